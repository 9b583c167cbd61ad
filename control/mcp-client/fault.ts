/** A fault of an MCP server or of the connection to it, with the error code for the task. */
import type { ErrorCode } from '../../shared/contract/error-codes.ts'

export class McpFault extends Error {
  override name = 'McpFault'
  /** The answer of the server, if there was one. */
  readonly result: unknown
  /** Set if the connection is unusable. `unheard`: the server did nothing. `unknown`: it may have acted. */
  readonly lost: 'unheard' | 'unknown' | undefined
  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ErrorOptions & { readonly result?: unknown; readonly lost?: 'unheard' | 'unknown' } = {},
  ) {
    super(message, options)
    this.result = options.result
    this.lost = options.lost
  }
}

/** Maximum characters of a text of a server in an error. */
export const MAX_REPEATED_CHARACTERS = 2_000

/** Maximum names in an error. The others are counted. */
const MAX_NAMES_IN_ERROR = 20

/** `names`, in their order, for an error message. */
export function namesText(names: readonly string[]): string {
  const more = names.length > MAX_NAMES_IN_ERROR ? ` and ${names.length - MAX_NAMES_IN_ERROR} more` : ''
  return `${[...names].sort().slice(0, MAX_NAMES_IN_ERROR).join(', ')}${more}`
}

/** `text` of a server, shortened for an error message. */
export const shortened = (text: string, max = MAX_REPEATED_CHARACTERS): string =>
  text.length <= max ? text : `${text.slice(0, max)}... (${text.length - max} more characters)`

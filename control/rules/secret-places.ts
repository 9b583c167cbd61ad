/**
 * Where `{"$secret": name}` stands in the input of a task: in what its executor sends to another host. Pure.
 *
 * The values are not put in before the request. An executor gets the input as it is kept, with the places of the secrets
 * beside it. Data that looks like a placeholder, such as the result of another task, is in no such place.
 */

import { runSync } from '../../shared/process/steps.ts'
import type { SecretText } from '../../shared/request/secret-text.ts'
import { fill, type Path, type Place } from './placeholders.ts'

/** A secret and its place. */
export interface SecretPlace {
  readonly path: Path
  readonly secret: SecretText
}

/** The input of a task whose request carries secrets. Nothing that is read from JSON is one. */
export class InputWithSecrets {
  constructor(
    readonly input: unknown,
    readonly places: readonly SecretPlace[],
  ) {}

  /** The input with the texts of its secrets. */
  with(textOf: (place: SecretPlace) => string): unknown {
    const values = this.places.map(textOf)
    const places = this.places.map(({ path, secret }): Place => ({ path, placeholder: { kind: 'secret', secret } }))
    return runSync(fill(this.input, places, values))
  }
}

/** What names the tool of a task. */
interface NamedTool {
  readonly type: string
  readonly toolName: string | undefined
}

/** Whether a tool sends secrets at all. */
export const isSender = ({ type, toolName }: NamedTool): boolean =>
  (type === 'os' && toolName === 'http') || type === 'mcp'

/** What is wrong with a secret at `path` of the input of a task; undefined if its executor sends it from there. */
export function secretPlaceFault({ type, toolName = '' }: NamedTool, path: Path): string | undefined {
  if (type === 'os' && toolName === 'http') {
    const [field] = path
    const isSent = field === 'headers' ? path.length === 2 : path.length === 1 && (field === 'url' || field === 'body')
    return isSent ? undefined : '$secret: expected as the url, the body or a header of an http task'
  }
  if (type === 'mcp' && toolName !== 'discover' && toolName !== 'poll') {
    const isArgument = toolName === 'call' ? path[0] === 'arguments' && path.length > 1 : path.length > 0
    return isArgument ? undefined : '$secret: expected in an argument of the tool'
  }
  return '$secret: only http and mcp tasks send one ("secrets" gives one to a process, {"$literal": ...} is the object itself)'
}

/** The secrets among `places` that the tool sends. In other tasks, which an earlier version took, they are data. */
export const secretPlacesOf = (tool: NamedTool, places: readonly Place[]): SecretPlace[] =>
  places.flatMap(({ path, placeholder }) =>
    placeholder.kind === 'secret' && secretPlaceFault(tool, path) === undefined
      ? [{ path, secret: placeholder.secret }]
      : [],
  )

/** JSON-RPC messages as far as the bridge needs them: ids, and the headers of the HTTP request. Pure. */
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'

export type Id = string | number

export interface Message {
  readonly jsonrpc: '2.0'
  readonly id?: Id | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: unknown
}

/** `value` as a message, or undefined. A batch is an array of messages. */
export const asMessage = (value: unknown): Message | undefined =>
  isObject(value) ? (value as unknown as Message) : undefined

/** The ids of the requests in `value`, a message or a batch. Notifications and answers have none. */
export const answerIdsOf = (value: unknown): Id[] =>
  (Array.isArray(value) ? value : [value]).flatMap((member) => {
    const { id, method } = asMessage(member) ?? {}
    return method !== undefined && (typeof id === 'string' || typeof id === 'number') ? [id] : []
  })

/** A field whose value is neither object nor array, with the comma after it. */
const STRING = String.raw`"(?:[^"\\]|\\.)*"`
const MEMBER = new RegExp(String.raw`\s*(${STRING})\s*:\s*(${STRING}|[\w.+-]+)\s*,`, 'y')

/** The id of a request of which only the beginning was read, if id and method stand before any object or array. */
export function idAtStart(text: string): Id | undefined {
  let id: Id | undefined
  let isRequest = false
  MEMBER.lastIndex = text.indexOf('{') + 1
  for (let member = MEMBER.exec(text); member !== null; member = MEMBER.exec(text)) {
    if (member[1] === '"id"') id = asId(member[2]!)
    isRequest ||= member[1] === '"method"'
  }
  return isRequest ? id : undefined
}

function asId(json: string): Id | undefined {
  const id = jsonOrUndefined(json)
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}

/** Error codes of JSON-RPC, and the first code for servers. */
export const CODES = { parseError: -32700, invalidRequest: -32600, unreachable: -32000 } as const

export const failure = (id: Id | null, code: number, message: string): Message => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
})

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/** The field of `params` that the HTTP transport repeats in a header, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/**
 * The headers of the HTTP transport. Newer protocol versions repeat fields of the message; for older ones it is the version
 * of the handshake.
 */
export function headersFor({ method, params }: Message, agreedVersion: string | undefined): Record<string, string> {
  const version = (params?._meta as Readonly<Record<string, unknown>> | undefined)?.[VERSION_KEY]
  if (typeof version !== 'string') return agreedVersion === undefined ? {} : { 'mcp-protocol-version': agreedVersion }
  const name = params?.[NAMED_BY[method ?? ''] ?? '']
  return {
    'mcp-protocol-version': headerValue(version),
    ...(method !== undefined && { 'mcp-method': headerValue(method) }),
    ...(typeof name === 'string' && { 'mcp-name': headerValue(name) }),
  }
}

/** Text that a header cannot contain, as base64 in the form of the protocol. */
const headerValue = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

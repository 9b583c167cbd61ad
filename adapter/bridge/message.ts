/** JSON-RPC messages as far as a bridge has to know them: whose answer they are, and which headers HTTP wants. Pure. */
import { isObject, jsonOrUndefined } from '../../shared/json.ts'

export type Id = string | number

export interface Message {
  readonly jsonrpc: '2.0'
  readonly id?: Id | null
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: Readonly<Record<string, unknown>>
  readonly error?: unknown
}

/** `value` as a message, or undefined when it is none. Batches are lists of them. */
export const asMessage = (value: unknown): Message | undefined =>
  isObject(value) ? (value as unknown as Message) : undefined

/** The ids that answers to `value`, a message or a batch of them, will have; none for notifications and answers. */
export const answerIdsOf = (value: unknown): Id[] =>
  (Array.isArray(value) ? value : [value]).flatMap((member) => {
    const { id, method } = asMessage(member) ?? {}
    return method !== undefined && (typeof id === 'string' || typeof id === 'number') ? [id] : []
  })

/** A member whose value is no object and no list, with the comma behind it. */
const STRING = String.raw`"(?:[^"\\]|\\.)*"`
const MEMBER = new RegExp(String.raw`\s*(${STRING})\s*:\s*(${STRING}|[\w.+-]+)\s*,`, 'y')

/** The id of a request of which only the beginning is there, if that and its method stand before anything large. */
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

/** The codes of JSON-RPC, and the first that is left to servers. */
export const CODES = { parseError: -32700, invalidRequest: -32600, unreachable: -32000 } as const

export const failure = (id: Id | null, code: number, message: string): Message => ({
  jsonrpc: '2.0',
  id,
  error: { code, message },
})

const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion'

/** The member of `params` that HTTP wants to see in a header, by method. */
const NAMED_BY: Readonly<Record<string, string>> = {
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
}

/**
 * What the newer era wants repeated in headers; a message of the older era gets the version that was agreed on at its
 * handshake. Both are what a client of HTTP would send.
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

/** What a header cannot hold goes as base64, in the form that the protocol has for it. */
const headerValue = (text: string): string =>
  /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text) && !text.startsWith('=?base64?')
    ? text
    : `=?base64?${Buffer.from(text).toString('base64')}?=`

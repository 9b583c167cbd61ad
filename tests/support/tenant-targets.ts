/** Graphs that tenants ask for, and their requests. */
import { expect } from 'bun:test'
import type { Control } from './control.ts'
import type { Tokens } from './tokens.ts'

export interface Asked {
  readonly method?: string
  readonly path: string
  readonly body?: unknown
  readonly headers?: Record<string, string>
}

/** Asks with the token called `name`. Of an endless answer only the beginning is read. */
export type Ask = (
  name: string,
  control: Control,
  asked: Asked,
) => Promise<{ status: number; headers: Headers; text: string }>

export const asker =
  (tokens: Tokens): Ask =>
  async (name, control, { method = 'GET', path, body, headers = {} }) => {
    const gone = new AbortController()
    const answer = await control.fetch(path, {
      ...{ method, headers: { ...headers, ...tokens.as(name) }, signal: gone.signal },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const isEndless = answer.ok && answer.headers.get('content-type')?.startsWith('text/event-stream')
    const text = isEndless ? '' : await answer.text()
    gone.abort()
    return { status: answer.status, headers: answer.headers, text }
  }

/** A graph to ask for, with the ids of its tasks. */
export interface Target {
  readonly graph: string
  readonly gate: string
  readonly call: string
}

export const UNKNOWN: Target = { graph: crypto.randomUUID(), gate: 'no-gate', call: 'no-call' }

/** A live graph: one task waits, one is the call of a tool. `mark` begins all texts that callers choose, but for ids. */
export async function targetOf(ask: Ask, name: string, control: Control, mark = ''): Promise<Target> {
  const unique = crypto.randomUUID()
  const text = mark + unique
  const ids = { gate: `gate-${unique}`, call: `call-${unique}` }
  const tasks = [
    { id: ids.gate, type: 'approval', params: { message: text } },
    { id: ids.call, type: 'mcp', tool_name: 'builtin/echo', input: { message: text } },
  ]
  const body = { name: text, labels: { team: 'shared', mark: text }, tasks }
  const answer = await ask(name, control, { method: 'POST', path: '/tasks', body })
  expect([answer.status, answer.text]).toEqual([202, expect.any(String)])
  return { ...ids, graph: JSON.parse(answer.text).graph_id }
}

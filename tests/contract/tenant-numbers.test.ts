/** What lists and metrics say of tenants, to an operator and to a tenant. Source: docs/security.md, Tenants. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'

const TOKENS = {
  ops: { rights: ['read', 'submit', 'cancel', 'operate'] },
  wile: { rights: ['read', 'submit', 'cancel_own', 'host'], tenant: 'acme' },
  hank: { rights: ['read', 'submit', 'host'], tenant: 'globex' },
} as const
type Name = keyof typeof TOKENS

let tokens: Tokens
let control: Control
const graphs = {} as Record<Name, string>

const send = async <T>(name: Name, path: string, headers: Readonly<Record<string, string>> = {}): Promise<T> => {
  const answer = await control.fetch(path, { headers: { ...tokens.as(name), ...headers } })
  return (answer.headers.get('content-type')?.includes('json') ? answer.json() : answer.text()) as Promise<T>
}

/** A graph with a success, a failure and an approval that waits. */
async function submitted(name: Name): Promise<string> {
  const tasks = [
    { id: 'a', type: 'noop' },
    { id: 'b', type: 'os', tool_name: 'no-such-tool' },
    { id: 'c', type: 'approval', depends_on: ['a'] },
  ]
  const body = JSON.stringify({ scope: 'graph', name: `of ${name}`, labels: { by: name }, tasks })
  const answer = await control.fetch('/tasks', { method: 'POST', headers: tokens.as(name), body })
  const { graph_id } = (await answer.json()) as { graph_id: string }
  await control.fetch(`/graphs/${graph_id}?wait_for=approval&wait_ms=30000`, { headers: tokens.as(name) })
  return graph_id
}

beforeAll(async () => {
  tokens = tokensFile(TOKENS)
  control = await startControl({ flags: ['--tokens-file', tokens.path] })
  for (const name of Object.keys(TOKENS) as Name[]) graphs[name] = await submitted(name)
})
afterAll(async () => {
  await control.dispose()
  tokens[Symbol.dispose]()
})

const listed = async (name: Name, query: string) =>
  (await send<GraphSummary[]>(name, `/graphs${query}`)).map(({ graph_id }) => graph_id)

test('an operator lists the graphs of a tenant', async () => {
  expect(await listed('ops', '')).toEqual([graphs.hank, graphs.wile, graphs.ops])
  expect(await listed('ops', '?tenant=acme')).toEqual([graphs.wile])
  expect(await listed('ops', '?tenant=nobody')).toEqual([])
  expect(await send('ops', '/graphs?tenant=')).toEqual({ error: 'invalid tenant "": expected the name of a tenant' })
})

test('the client has a column and a line for the tenant', async () => {
  const env = { SERVICE_TOKEN: 'token-of-ops' }
  const all = await runClient(['graphs', '-o', 'table'], { url: control.url, env })
  expect(all.stdout).toMatch(/^GRAPH +STATE +NAME +TASKS +TOOK +CREATED +TENANT +LABELS\n/)
  expect(all.stdout).toMatch(new RegExp(`${graphs.wile} .* acme +by=wile`))
  const own = await runClient(['graphs', '--tenant', 'acme'], { url: control.url, env })
  expect(own.envelope.data).toMatchObject({ graphs: [{ graph_id: graphs.wile, tenant: 'acme', submitted_by: 'wile' }] })
  const one = await runClient(['graph', graphs.wile, '-o', 'table'], { url: control.url, env })
  expect(one.stdout).toMatch(/^tenant +acme$/m)
})

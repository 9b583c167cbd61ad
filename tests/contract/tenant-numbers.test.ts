/** What lists and metrics say of tenants, to an operator and to a tenant. Source: docs/security.md, Tenants. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import type { GraphSummary } from '../../shared/contract/graphs.ts'
import { OPENMETRICS_TYPE, TEXT_TYPE } from '../../shared/logs/prometheus.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

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
  control = await startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
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

describe('metrics of a tenant', () => {
  test('count its tasks alone', async () => {
    expect(await send('wile', '/metrics')).toEqual({
      ...{ tasks_total: 3, tasks_running: 0, tasks_succeeded: 1, tasks_failed: 1 },
      by_type: { os: 2, approval: 1 },
    })
    expect(await send('ops', '/metrics')).toMatchObject({ tasks_total: 9, by_type: { os: 6, approval: 3 } })
  })

  test.each([
    ['text/plain', TEXT_TYPE, ''],
    ['application/openmetrics-text', OPENMETRICS_TYPE, '# EOF\n'],
  ])('as %s are a few gauges', async (accept, type, end) => {
    const answer = await control.fetch('/metrics', { headers: { ...tokens.as('wile'), accept } })
    expect(answer.headers.get('content-type')).toBe(type)
    const lines = (await answer.text()).split('\n').filter((line) => !line.startsWith('# HELP') && !line.endsWith(' 0'))
    expect(`${lines.join('\n')}`).toBe(`# TYPE service_control_tenant_tasks gauge
service_control_tenant_tasks{type="os",status="success"} 1
service_control_tenant_tasks{type="os",status="failed"} 1
service_control_tenant_tasks{type="approval",status="pending"} 1
# TYPE service_control_tenant_graphs gauge
service_control_tenant_graphs{state="running"} 1
# TYPE service_control_tasks_running gauge
# TYPE service_control_paused gauge
# TYPE service_control_approvals_waiting gauge
service_control_approvals_waiting 1
${end}`)
  })

  test('follow its graphs', async () => {
    const text = async () => send<string>('hank', '/metrics', { accept: 'text/plain' })
    const act = async (verb: string) =>
      (await control.fetch(`/graphs/${graphs.hank}/${verb}`, { method: 'POST', headers: tokens.as('ops') })).status
    expect(await act('pause')).toBe(200)
    expect(await text()).toContain('service_control_paused{of="graph"} 1\n')
    expect(await act('cancel')).toBe(202)
    await until(text, (found) => found.includes('service_control_tenant_graphs{state="failed"} 1\n'))
    const gone = await control.fetch(`/graphs/${graphs.hank}`, { method: 'DELETE', headers: tokens.as('ops') })
    expect(gone.status).toBe(204)
    expect(await send('hank', '/metrics')).toMatchObject({ tasks_total: 0, by_type: {} })
  })
})

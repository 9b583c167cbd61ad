/**
 * Goal: a token with a tenant sees and touches the graphs of its tenant, and everything else is unknown to it.
 * Method: the routes are read from the app, the tools from their list; each is asked with each right, for a graph of the own
 * tenant, of another one, of nobody, and for one that does not exist. A new route or tool without a row fails. Against the built
 * service. Source: docs/security.md.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { TOOLS } from '../../control/mcp-server/tools.ts'
import { describedControl } from '../../scripts/described-apps.ts'
import { RIGHTS, type Right, type RouteRight } from '../../shared/contract/rights.ts'
import { descriptionIn } from '../../shared/http/openapi/route.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Ask, type Asked, asker, type Target, targetOf, UNKNOWN } from '../support/tenant-targets.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const nameOf = (right: Right) => `a-only-${right.replace('_', '-')}`

let tokens: Tokens
let control: Control

beforeAll(async () => {
  const only = RIGHTS.map((right) => [nameOf(right), { tenant: 'a', rights: [right] }] as const)
  tokens = tokensFile({
    ...Object.fromEntries(only),
    a: { tenant: 'a', rights: RIGHTS },
    b: { tenant: 'b', rights: RIGHTS },
    ops: { rights: RIGHTS },
  })
  control = await startControl({
    flags: ['--tokens-file', tokens.path, '--mcp-toolsets', 'graphs,schedules,live'],
    env: { SERVICE_TOKEN: 'sesame' },
  })
  const asAt = asker(tokens)
  ask = (name, asked) => asAt(name, control, asked)
  newTarget = (name) => targetOf(asAt, name, control)
})
afterAll(async () => {
  await control.dispose()
  tokens[Symbol.dispose]()
})

let ask: (name: string, asked: Asked) => ReturnType<Ask>
let newTarget: (name: string) => Promise<Target>

/** How the ids of a task are written where they are not below their graph. */
type Naming = (target: Target, id: string) => string
const byAddress: Naming = ({ graph }, id) => `${graph}/${id}`
const byId: Naming = (_, id) => id

/** Bodies with which a route gets as far as to its graph. */
const BODIES: Readonly<Record<string, (target: Target) => unknown>> = {
  'POST /graphs/:id/rerun': () => ({}),
  'POST /graphs/:id/pause': () => ({ why: 'a look' }),
  'PATCH /graphs/:id': () => ({ add: [{ id: 'more', type: 'noop' }] }),
  ...Object.fromEntries(
    ['approve', 'reject'].flatMap((verb) =>
      ['/tasks/:id', '/graphs/:id/tasks/:task_id'].map((path) => [`POST ${path}/${verb}`, () => ({ who: 'ada' })]),
    ),
  ),
}

const isOfGraph = (path: string) => path.startsWith('/graphs/:id')
const isOfTask = (path: string) => path.startsWith('/tasks/:id') || path.startsWith('/mcp/tasks/:id')

function requestFor(route: string, target: Target, naming: Naming = byAddress): Asked {
  const [method, pattern] = route.split(' ') as [string, string]
  const task = pattern.startsWith('/mcp/') ? target.call : target.gate
  const path = isOfGraph(pattern)
    ? pattern.replace(':id', target.graph).replace(':task_id', target.gate)
    : pattern.replace(':id', encodeURIComponent(naming(target, task)))
  return { method, path: path.replace('/*', '/some/file'), body: BODIES[route]?.(target) }
}

/** The other routes. `all`: what it answers is the same for everybody. `lists`: only what is the caller's. */
const OTHERS: Readonly<Record<string, 'all' | 'lists' | 'submits' | 'service'>> = {
  ...{ 'GET /': 'all', 'GET /assets/:name': 'all', 'GET /docs': 'all', 'GET /openapi.json': 'all' },
  ...{ 'GET /health': 'all', 'GET /readyz': 'all', 'GET /metrics': 'all', 'GET /mcp/tools': 'all' },
  ...{ 'GET /adapters/capabilities': 'all', 'GET /adapters/tools': 'all', 'POST /adapters/translate': 'all' },
  ...{ 'POST /session': 'all', 'GET /session': 'all', 'DELETE /session': 'all', 'POST /session/links': 'all' },
  ...{ 'GET /tasks': 'lists', 'GET /graphs': 'lists', 'GET /events': 'lists', 'POST /mcp': 'lists' },
  ...{ 'POST /tasks': 'submits', 'POST /mcp/call': 'submits', 'POST /adapters/actions': 'submits' },
  ...{ 'GET /runtime': 'service', 'GET /runtimes': 'service', 'POST /runtimes': 'service', 'GET /audit': 'service' },
  ...{ 'DELETE /runtimes/:name': 'service', 'POST /runtimes/:name/drain': 'service' },
  ...{ 'POST /runtimes/:name/undrain': 'service', 'GET /schedules': 'service', 'GET /schedule-files': 'service' },
  ...{ 'GET /schedules/:name': 'service', 'PUT /schedules/:name': 'service', 'DELETE /schedules/:name': 'service' },
  ...{ 'POST /schedules/:name/pause': 'service', 'POST /schedules/:name/resume': 'service' },
  ...{ 'POST /schedules/:name/trigger': 'service', 'GET /pauses': 'service', 'POST /pause': 'service' },
  ...{ 'POST /resume': 'service', 'GET /audit/events': 'service' },
}

const routes = describedControl({ hasDatabase: true })
  .routes.filter(({ method }) => method !== 'ALL')
  .map(({ method, path, hooks }) => ({ name: `${method} ${path}`, path, ...descriptionIn(hooks) }))

const ofGraphs = routes.filter(({ path }) => isOfGraph(path) || isOfTask(path))
const ofReplicas = ({ right }: { readonly right?: RouteRight }) => right === 'service'

/** Whether a token that has `right` alone passes the check of a route. */
const opens = (right: Right, asked: RouteRight | undefined) =>
  asked === 'none' || asked === 'any' || right === asked || (right === 'cancel_own' && asked === 'cancel')

test('each route has a row', () => {
  const others = routes.filter((route) => !ofGraphs.includes(route) && !ofReplicas(route))
  expect(others.map(({ name }) => name).sort()).toEqual(Object.keys(OTHERS).sort())
})

describe('a route of a graph', () => {
  let ofB: Target
  let ofNobody: Target
  let kept: Target
  beforeAll(async () => {
    kept = await newTarget('a')
    ofB = await newTarget('b')
    ofNobody = await newTarget('ops')
  })

  /** The answer with the ids of `target` taken out. */
  const plain = async (name: string, asked: Asked, { graph, gate, call }: Target) => {
    const { status, headers, text } = await ask(name, asked)
    const shown = [encodeURIComponent(graph), graph, gate, call].reduce((rest, id) => rest.replaceAll(id, 'ID'), text)
    const others = [...headers].filter(([header]) => !['x-trace-id', 'date', 'content-length'].includes(header))
    return { status, headers: others, text: shown }
  }

  test.each(ofGraphs.map(({ name, right }) => [name, right] as const))('%s', async (route, asked) => {
    for (const right of RIGHTS) {
      const name = nameOf(right)
      const own = opens(right, asked) ? await newTarget(nameOf('submit')) : kept
      const { status, text } = await ask(name, requestFor(route, own))
      const isRefused = !opens(right, asked) || right === 'cancel_own' // another token has submitted it
      const isOther = /\/(files|network)(\/|$)/.test(route) && status === 404 && !text.startsWith('{"error":"task not')
      if (isRefused) expect([right, status, text]).toEqual([right, 403, text])
      else if (!isOther) expect([right, [403, 404].includes(status), text]).toEqual([right, false, text])
      for (const naming of isOfTask(route.split(' ')[1]!) ? [byAddress, byId] : [byId]) {
        const unknown = await plain(name, requestFor(route, UNKNOWN, naming), UNKNOWN)
        expect([right, unknown.status]).toEqual([right, opens(right, asked) ? 404 : 403])
        for (const foreign of [ofB, ofNobody])
          expect(await plain(name, requestFor(route, foreign, naming), foreign)).toEqual(unknown)
      }
    }
  })

  test('of another tenant is as it was', async () => {
    for (const { graph } of [ofB, ofNobody]) {
      const { text } = await ask('ops', { method: 'GET', path: `/graphs/${graph}` })
      expect(JSON.parse(text)).toMatchObject({ state: 'running', task_count: 2 })
      expect(JSON.parse(text).tasks[0]).toMatchObject({ status: 'pending', waiting: { reason: 'approval' } })
    }
  })
})

describe('a route of the whole service', () => {
  const service = routes.filter(({ name }) => OTHERS[name] === 'service')

  test.each(service.map(({ name }) => name))('%s is refused to a tenant', async (route) => {
    const [method, path] = route.split(' ') as [string, string]
    const { status, text } = await ask('a', {
      method,
      path: path.replace(':name', 'some'),
      ...(method !== 'GET' && { body: {} }),
    })
    const error = `${route} belongs to the whole service: the token a is of tenant a`
    expect([status, JSON.parse(text)]).toEqual([403, { error }])
  })

  test('no other has that mark', () => {
    expect(routes.filter(({ isOfService }) => isOfService).map(({ name }) => name)).toEqual(
      service.map(({ name }) => name),
    )
  })

  test.each(routes.filter(ofReplicas).map(({ name }) => name))('%s opens to no token with a name', async (route) => {
    const right = routes.find(({ name }) => name === route)!.right
    for (const own of RIGHTS) expect(opens(own, right)).toBe(false)
  })
})

describe('a list', () => {
  test('of tasks has all records of the own graphs, and no other', async () => {
    const own = await newTarget('a')
    const others = [await newTarget('b'), await newTarget('ops')]
    for (const path of ['/tasks', '/tasks?limit=1000', `/tasks?graph_id=${own.graph}`]) {
      const { text } = await ask('a', { method: 'GET', path })
      expect([path, text.includes(own.gate), text.includes(own.call)]).toEqual([path, true, true])
      for (const { gate, graph } of others) expect([text.includes(gate), text.includes(graph)]).toEqual([false, false])
    }
    for (const { graph } of [...others, UNKNOWN])
      expect((await ask('a', { method: 'GET', path: `/tasks?graph_id=${graph}` })).text).toBe('[]')
  })

  test('of tasks goes page by page', async () => {
    const own = [await newTarget('a'), await newTarget('a')]
    const ids: string[] = []
    for (let cursor = ''; ; ) {
      const { text, headers } = await ask('a', { method: 'GET', path: `/tasks?limit=50${cursor}` })
      ids.push(...JSON.parse(text).map(({ id }: { id: string }) => id))
      const next = headers.get('x-next-cursor')
      if (next === null) break
      cursor = `&cursor=${next}`
    }
    const all = JSON.parse((await ask('a', { method: 'GET', path: '/tasks' })).text) as { id: string }[]
    expect(ids).toEqual(all.map(({ id }) => id))
    expect(ids).toEqual(expect.arrayContaining(own.flatMap(({ gate, call }) => [gate, call])))
  })

  test('of graphs has the own ones, also under names and labels of others', async () => {
    const own = await newTarget('a')
    const labels = { team: 'shared' }
    const tasks = [{ id: 'one', type: 'noop' }]
    for (const name of ['a', 'b', 'ops'])
      await ask(name, {
        method: 'POST',
        path: '/tasks',
        body: { name: 'nightly', labels, tasks: tasks.map((task) => ({ ...task, id: `${name}-one` })) },
      })
    const all = JSON.parse((await ask('a', { method: 'GET', path: '/graphs?limit=100' })).text)
    expect(all.map(({ graph_id }: { graph_id: string }) => graph_id)).toContain(own.graph)
    expect(new Set(all.map(({ tenant }: { tenant: string }) => tenant))).toEqual(new Set(['a']))
    const named = JSON.parse((await ask('a', { method: 'GET', path: '/graphs?name=nightly&label=team=shared' })).text)
    expect(named.map(({ tenant, submitted_by }: Record<string, string>) => [tenant, submitted_by])).toEqual([
      ['a', 'a'],
    ])
  })
})

test('whoever asks for a task by its id alone is told how to name it', async () => {
  const { gate } = await newTarget('a')
  const remedy = 'the ids of tasks of a tenant belong to their graphs: name it as graph_id/task_id'
  const { status, text } = await ask('a', { method: 'GET', path: `/tasks/${gate}` })
  expect([status, JSON.parse(text)]).toEqual([404, { error: `task not found: ${gate} (${remedy})` }])
})

test('the events of a removed graph are for its tenant and the operator', async () => {
  const { graph } = await newTarget('a')
  await ask('a', { method: 'POST', path: `/graphs/${graph}/cancel` })
  await until(
    () => ask('a', { method: 'DELETE', path: `/graphs/${graph}` }),
    ({ status }) => status === 204,
  )
  const past = (name: string) => ask(name, { method: 'GET', path: `/graphs/${graph}/events?after=0` })
  for (const name of ['a', 'ops']) expect([name, (await past(name)).status]).toEqual([name, 200])
  const { status, text } = await past('b')
  expect([status, JSON.parse(text)]).toEqual([404, { error: `graph not found: ${graph}` }])
})

describe('a submission', () => {
  const submit = (name: string, body: object, headers = {}) =>
    ask(name, { method: 'POST', path: '/tasks', body, headers })

  test('takes no id from another tenant, and none is refused', async () => {
    const body = { tasks: [{ id: 'shared', type: 'approval' }] }
    const all = [await submit('ops', body), await submit('a', body), await submit('b', body), await submit('a', body)]
    expect(all.map(({ status }) => status)).toEqual([202, 202, 202, 202])
    const dry = await ask('a', { method: 'POST', path: '/tasks?dry_run=true', body })
    expect(JSON.parse(dry.text)).toMatchObject({ valid: true, errors: [] })
  })

  test('with the key of another tenant is a submission of its own', async () => {
    const body = { tasks: [{ id: 'keyed', type: 'approval' }] }
    const key = { 'idempotency-key': 'the-same' }
    const first = await submit('b', body, key)
    const own = await submit('a', body, key)
    expect([own.status, JSON.parse(own.text).graph_id === JSON.parse(first.text).graph_id]).toEqual([202, false])
    expect((await submit(nameOf('submit'), body, key)).text).toBe(own.text)
    expect((await submit('a', { tasks: [{ id: 'other', type: 'noop' }] }, key)).status).toBe(422)
    expect((await submit('ops', { tasks: [{ id: 'other', type: 'noop' }] }, key)).status).toBe(202)
  })

  test('shares no group with another tenant', async () => {
    const tasks = [{ id: 'gate', type: 'approval' }]
    const bodyOf = (on_full: string) => ({ tasks, concurrency: { group: 'deploy', on_full } })
    const firstOf = async (name: string) => JSON.parse((await submit(name, bodyOf('refuse'))).text).graph_id as string
    const [own, other, nobodys] = [await firstOf('a'), await firstOf('b'), await firstOf('ops')]
    const full = `concurrency: group "deploy" is full (limit 1): graph ${own} has not ended`
    expect(JSON.parse((await submit('a', bodyOf('refuse'))).text)).toEqual({ error: full })
    const dry = await ask('a', { method: 'POST', path: '/tasks?dry_run=true', body: bodyOf('refuse') })
    expect(JSON.parse(dry.text).errors).toEqual([{ message: full }])
    expect((await submit('a', bodyOf('cancel_oldest'))).status).toBe(202)
    const stateOf = async (graph: string) =>
      JSON.parse((await ask('ops', { method: 'GET', path: `/graphs/${graph}` })).text).state
    await until(() => stateOf(own), 'cancelled')
    expect([await stateOf(other), await stateOf(nobodys)]).toEqual(['running', 'running'])
  })

  test('of a call has a handle that finds it', async () => {
    const call = { tool_name: 'builtin/echo', input: { message: 'hello' }, id: 'echo' }
    for (const name of ['a', 'b']) {
      const { status, text } = await ask(name, { method: 'POST', path: '/mcp/call', body: call })
      expect([status, text]).toEqual([202, text])
      const { handle_id } = JSON.parse(text)
      const read = () => ask(name, { method: 'GET', path: `/mcp/tasks/${encodeURIComponent(handle_id)}` })
      const record = await until(
        async () => JSON.parse((await read()).text),
        ({ status }) => status === 'success',
      )
      expect(record).toMatchObject({ task_id: 'echo', handle_id, output: expect.anything() })
      const others = await ask('a', { method: 'GET', path: `/mcp/tasks/${encodeURIComponent(handle_id)}` })
      expect(others.status).toBe(name === 'a' ? 200 : 404)
    }
  })

  test('of an action names its tasks with their graph', async () => {
    const action = {
      kind: 'task_graph.submit',
      input: {
        tasks: [
          { id: 'x","y', type: 'noop' },
          { id: 'z', type: 'noop' },
        ],
      },
    }
    const body = { adapter: 'codex', action_id: 'one', action }
    const { status, text } = await ask('a', { method: 'POST', path: '/adapters/actions', body })
    expect([status, text]).toEqual([202, text])
    const { task_ids, translation_trace } = JSON.parse(text)
    expect(translation_trace.task_ids).toEqual(task_ids)
    expect(task_ids.map((id: string) => id.slice(id.indexOf('/') + 1))).toEqual(['x","y', 'z'])
    for (const id of task_ids)
      expect((await ask('a', { method: 'GET', path: `/tasks/${encodeURIComponent(id)}` })).status).toBe(200)
  })

  test('that an operator runs again keeps its tenant', async () => {
    const { text } = await submit('a', { tasks: [{ id: 'fails', type: 'os', params: { tool: 'nothing' } }] })
    const { graph_id } = JSON.parse(text)
    await ask('a', { method: 'POST', path: `/graphs/${graph_id}/cancel` })
    const again = await until(
      () => ask('ops', { method: 'POST', path: `/graphs/${graph_id}/rerun`, body: {} }),
      ({ status }) => status === 202,
    )
    const { graph_id: rerun } = JSON.parse(again.text)
    const seen = await ask('a', { method: 'GET', path: `/graphs/${rerun}` })
    expect([seen.status, JSON.parse(seen.text).tenant, JSON.parse(seen.text).submitted_by]).toEqual([200, 'a', 'ops'])
    expect((await ask('b', { method: 'GET', path: `/graphs/${rerun}` })).status).toBe(404)
  })
})

describe('a tool of POST /mcp', () => {
  const ofService = TOOLS.filter((tool) => tool.isOfService).map(({ name }) => name)
  const ofTask = (more: object) => (_: Target, address: string) => ({ task_id: address, ...more })
  const ofTasks = (more: object) => (_: Target, address: string) => ({ task_ids: [address], ...more })
  const ofGraph =
    (more: object) =>
    ({ graph }: Target) => ({ graph_id: graph, ...more })
  /** The arguments with which each tool names what it works on. */
  const NAMING: Readonly<Record<string, readonly ((target: Target, address: string) => Record<string, unknown>)[]>> = {
    rerun_graph: [ofGraph({})],
    wait: [ofTasks({ timeout_ms: 0 }), ofGraph({ timeout_ms: 0 })],
    get_task: [ofTask({})],
    get_graph: [ofGraph({})],
    get_logs: [ofTask({})],
    get_task_file: [ofTask({ path: 'some' })],
    answer_approval: [ofTask({ approved: true, who: 'ada' })],
    cancel: [ofTasks({}), ofGraph({})],
    signal_task: [ofTask({ value: 1 })],
    pause: [ofGraph({})],
    resume: [ofGraph({})],
    retry_task: [ofTask({}), ofGraph({})],
    patch_graph: [ofGraph({ add: [{ id: 'more', type: 'noop' }] })],
  }
  const UNNAMED = ['submit_graph', 'run_action', 'list_tasks', 'list_graphs', 'capabilities']

  test('each has a row', () => {
    const rows = [...Object.keys(NAMING), ...UNNAMED, ...ofService]
    expect(rows.sort()).toEqual(TOOLS.map(({ name }) => name).sort())
    expect(ofService.sort()).toEqual(['change_schedule', 'list_schedules', 'put_schedule'])
  })

  test('of the whole service is neither listed nor answers', async () => {
    await using mcp = await connectClient(control.url, 'auto', tokens.as('a'))
    const listed = (await mcp.client.listTools()).tools.map(({ name }) => name)
    expect(listed.sort()).toEqual([...Object.keys(NAMING), ...UNNAMED].sort())
    const refused = 'belongs to the whole service: the token a is of tenant a'
    for (const name of ofService) expect((await mcp.call(name, {})).text).toBe(`${name} ${refused}`)
    for (const name of ['pause', 'resume'])
      for (const given of [{}, { type: 'os' }])
        expect((await mcp.call(name, given)).text).toBe(`${name} without graph_id ${refused}`)
  })

  test.each(Object.keys(NAMING))('%s finds what is its own, and nothing of others', async (tool) => {
    await using mcp = await connectClient(control.url, 'auto', tokens.as('a'))
    const foreign = [await newTarget('b'), await newTarget('ops')]
    for (const args of NAMING[tool]!) {
      const own = await newTarget('a')
      const { text } = await mcp.call(tool, args(own, byAddress(own, own.gate)))
      expect(text).not.toContain('not found')
      for (const naming of [byAddress, byId]) {
        const told = async (target: Target) => {
          const answer = await mcp.call(tool, args(target, naming(target, target.gate)))
          const { graph, gate } = target
          return [answer.isError, answer.text.replaceAll(graph, 'ID').replaceAll(gate, 'ID')]
        }
        const unknown = await told(UNKNOWN)
        expect(unknown).toEqual([true, expect.stringContaining('not found')])
        for (const target of foreign) expect(await told(target)).toEqual(unknown)
      }
    }
  })

  test('list_tasks and list_graphs show the own ones', async () => {
    const [own, other, nobodys] = [await newTarget('a'), await newTarget('b'), await newTarget('ops')]
    await using mcp = await connectClient(control.url, 'auto', tokens.as('a'))
    const tasks = await mcp.call('list_tasks', { limit: 100 })
    const graphs = await mcp.call('list_graphs', { limit: 100 })
    expect(tasks.text).toContain(byAddress(own, own.gate))
    expect(graphs.text).toContain(own.graph)
    for (const { graph, gate } of [other, nobodys])
      for (const { text } of [tasks, graphs])
        expect([text.includes(graph), text.includes(gate)]).toEqual([false, false])
    const all = JSON.parse((await ask('a', { method: 'GET', path: '/tasks' })).text).length
    const { counts } = tasks.data
    expect(Object.values(counts as Record<string, number>).reduce((sum, count) => sum + count, 0)).toBe(all)
  })

  test('submit_graph and run_action name tasks so that others find them', async () => {
    await using mcp = await connectClient(control.url, 'auto', tokens.as('a'))
    const graph = await mcp.call('submit_graph', { tasks: [{ id: 'step', type: 'noop' }], wait_ms: 10_000 })
    const action = await mcp.call('run_action', { kind: 'os.noop', input: {}, wait_ms: 10_000 })
    for (const { data } of [graph, action]) {
      expect(data).toMatchObject({ all_terminal: true, counts: { success: 1 } })
      expect((await mcp.call('get_task', { task_id: data.task_ids[0] })).isError).toBe(false)
    }
  })
})

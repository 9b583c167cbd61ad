/**
 * Goal: a token with a tenant sees the graphs of its tenant at any replica, wherever they are, and nothing of others: also while nobody
 * has them, and after a takeover.
 * Method: two tenants and an operator, whose graphs have marks in all that callers choose. The routes are read from the app. What
 * a tenant is told of a foreign graph is what it is told of one that does not exist, and no answer has a foreign mark.
 * Source: docs/cluster.md, docs/security.md.
 */
import { expect, test } from 'bun:test'
import { describedControl } from '../../scripts/described-apps.ts'
import { RIGHTS } from '../../shared/contract/rights.ts'
import type { Control } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { connectClient } from '../support/mcp-client.ts'
import { type Cluster, describeReplicas, LONG_LEASE } from '../support/replicas.ts'
import { type Ask, type Asked, asker, type Target, targetOf, UNKNOWN } from '../support/tenant-targets.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const TENANTS = ['a', 'b'] as const
const NAMES = [...TENANTS, 'ops'] as const
type Name = (typeof NAMES)[number]

const MAY = { rights: RIGHTS, approve_own: true }
const PEOPLE = { a: { ...MAY, tenant: 'a' }, b: { ...MAY, tenant: 'b' }, ops: MAY }

/** In all texts that callers choose, but for ids. */
const markOf = (name: Name) => `mark-of-${name}-`

const start = (each: Cluster, tokens: Tokens, flags: readonly string[] = []) =>
  each.replica([...flags, '--tokens-file', tokens.path, '--mcp-toolsets', 'graphs,live'], { SERVICE_TOKEN: 'sesame' })

const markedTarget = (ask: Ask, name: Name, control: Control) => targetOf(ask, name, control, markOf(name))

const ROUTES = describedControl({ hasDatabase: true })
  .routes.filter(({ method, path }) => method !== 'ALL' && /^\/(graphs|tasks|mcp\/tasks)\/:id/.test(path))
  .map(({ method, path }) => `${method} ${path}`)

/** Bodies with which a route gets as far as to its graph. */
const BODIES: Readonly<Record<string, unknown>> = {
  rerun: {},
  pause: { why: 'a look' },
  approve: { who: 'ada' },
  reject: { who: 'ada' },
  ':id': { add: [{ id: 'more', type: 'noop' }] },
}

function requestFor(route: string, { graph, gate, call }: Target): Asked {
  const [method, pattern] = route.split(' ') as [string, string]
  const task = pattern.startsWith('/mcp/') ? call : gate
  const id = pattern.startsWith('/graphs/') ? graph : encodeURIComponent(`${graph}/${task}`)
  const path = pattern.replace(':id', id).replace(':task_id', gate).replace('/*', '/some/file')
  return { method, path, ...(/POST|PATCH/.test(method) && { body: BODIES[pattern.split('/').at(-1)!] }) }
}

/** What `name` is told, without the ids that it has asked for. */
async function toldOf(ask: Ask, name: Name, control: Control, asked: Asked, { graph, gate, call }: Target) {
  const { status, text } = await ask(name, control, asked)
  return { status, text: [graph, gate, call].reduce((rest, id) => rest.replaceAll(id, 'ID'), text) }
}

/** What is foreign is unknown to `name` at `control`, by each route and tool. */
async function expectUnknown(ask: Ask, tokens: Tokens, name: Name, control: Control, foreign: readonly Target[]) {
  for (const route of ROUTES) {
    const unknown = await toldOf(ask, name, control, requestFor(route, UNKNOWN), UNKNOWN)
    expect([route, unknown.status]).toEqual([route, 404])
    for (const target of foreign)
      expect([route, await toldOf(ask, name, control, requestFor(route, target), target)]).toEqual([route, unknown])
  }
  await using mcp = await connectClient(control.url, 'auto', tokens.as(name))
  for (const tool of ['get_graph', 'wait', 'cancel', 'rerun_graph', 'pause', 'get_task', 'get_logs'] as const) {
    const told = async ({ graph, gate }: Target) => {
      const named =
        tool.startsWith('get_') && tool !== 'get_graph' ? { task_id: `${graph}/${gate}` } : { graph_id: graph }
      const { isError, text } = await mcp.call(tool, named)
      return [tool, isError, text.replaceAll(graph, 'ID').replaceAll(gate, 'ID')]
    }
    const unknown = await told(UNKNOWN)
    expect(unknown).toEqual([tool, true, expect.stringContaining('not found')])
    for (const target of foreign) expect(await told(target)).toEqual(unknown)
  }
}

const isOf = (graph: string) => (event: object) => 'graph_id' in event && event.graph_id === graph

/** All that `name` can have listed at `control`, and its events up to those of `own`, which are its newest graphs. */
async function listsOf(
  ask: Ask,
  tokens: Tokens,
  name: Name,
  control: Control,
  own: readonly Target[],
): Promise<string[]> {
  const paths = ['/tasks', '/tasks?limit=1000', '/graphs?limit=100', '/graphs?label=team=shared&limit=100']
  const answers = await Promise.all(paths.map((path) => ask(name, control, { path })))
  for (const { headers } of answers) expect(headers.get('x-missing-replicas')).toBeNull()
  await using mcp = await connectClient(control.url, 'auto', tokens.as(name))
  const calls = await Promise.all(['list_tasks', 'list_graphs'].map((tool) => mcp.call(tool, { limit: 100 })))
  await using past = await EventStreamClient.open(`${control.url}/events?after=0`, tokens.as(name))
  const events = await past.once((all) => own.every(({ graph }) => all.some(isOf(graph))))
  return [...answers, ...calls].map(({ text }) => text).concat(JSON.stringify(events))
}

/** Each caller has its own graphs listed, and tenants no word of others. */
async function expectLists(ask: Ask, tokens: Tokens, control: Control, all: Readonly<Record<Name, readonly Target[]>>) {
  for (const name of NAMES) {
    const lists = await listsOf(ask, tokens, name, control, all[name])
    const foreign = name === 'ops' ? [] : NAMES.filter((other) => other !== name)
    const words = foreign.flatMap((other) => [markOf(other), ...all[other].flatMap((target) => Object.values(target))])
    for (const [i, list] of lists.entries()) {
      const lacking = all[name].filter(({ graph, gate }) => !list.includes(graph) && !list.includes(gate))
      expect([name, i, lacking]).toEqual([name, i, []])
      expect([name, i, words.filter((word) => list.includes(word))]).toEqual([name, i, []])
    }
  }
}

describeReplicas('tenants of several replicas', (cluster) => {
  test('see what is their own wherever it is, and nothing else, also when its replica is killed', async () => {
    using each = await cluster()
    using tokens = tokensFile(PEOPLE)
    const ask = asker(tokens)
    await using first = await start(each, tokens)
    await using second = await start(each, tokens)
    const both = async (name: Name) =>
      [await markedTarget(ask, name, second), await markedTarget(ask, name, first)] as const
    const all = { b: await both('b'), ops: await both('ops'), a: await both('a') } as const
    for (const control of [first, second]) {
      await expectLists(ask, tokens, control, all)
      await expectUnknown(ask, tokens, 'a', control, [...all.b, ...all.ops])
    }
    for (const route of ROUTES) {
      const own = await markedTarget(ask, 'a', first)
      const { status, text } = await ask('a', second, requestFor(route, own))
      const isWithout =
        /\/(files|network)(\/|$)/.test(route) && status === 404 && !text.startsWith('{"error":"task not')
      if (!isWithout) expect([route, [403, 404, 503].includes(status), text]).toEqual([route, false, text])
    }
    const removed = { b: await markedTarget(ask, 'b', first), a: await markedTarget(ask, 'a', first) }
    for (const name of ['b', 'a'] as const) {
      const path = `/graphs/${removed[name].graph}`
      expect((await ask(name, second, { method: 'POST', path: `${path}/cancel` })).status).toBe(202)
      await until(
        () => ask(name, second, { method: 'DELETE', path }),
        ({ status }) => status === 204,
      )
    }
    await first.stop('SIGKILL')
    await expectUnknown(ask, tokens, 'a', second, [all.b[1], all.ops[1]])
    for (const name of NAMES)
      await until(
        () => ask(name, second, { path: `/graphs/${all[name][1].graph}` }),
        ({ status }) => status === 200,
        { patienceMs: 50_000 },
      )
    const detail = JSON.parse((await ask('a', second, { path: `/graphs/${all.a[1].graph}` })).text)
    expect(detail).toMatchObject({ tenant: 'a', scope: 'graph', state: 'running' })
    await until(
      () => ask('ops', second, { path: '/graphs' }),
      ({ headers }) => !headers.has('x-missing-replicas'),
      { patienceMs: 50_000 },
    )
    await expectLists(ask, tokens, second, all)
    await expectUnknown(ask, tokens, 'a', second, [...all.b, ...all.ops])
    await using past = await EventStreamClient.open(`${second.url}/events?after=0`, tokens.as('a'))
    const events = await past.once((some) =>
      some.some((event) => event.event === 'graph_removed' && event.graph_id === removed.a.graph),
    )
    expect(events.filter(isOf(removed.b.graph))).toEqual([])
    const approve = {
      method: 'POST',
      path: `/graphs/${all.a[1].graph}/tasks/${all.a[1].gate}/approve`,
      body: { who: 'a' },
    }
    expect((await ask('a', second, approve)).status).toBe(200)
  })

  test('share no key and no group, at any replica, also after the kill of one', async () => {
    using each = await cluster()
    using tokens = tokensFile(PEOPLE)
    const ask = asker(tokens)
    await using first = await start(each, tokens)
    await using second = await start(each, tokens)
    const headers = { 'idempotency-key': 'the same' }
    const graph = { tasks: [{ id: 'one', type: 'noop' }] }
    const action = { adapter: 'codex', action_id: 'one', action: { kind: 'task_graph.submit', input: graph } }
    const submissions = [
      { method: 'POST', path: '/tasks', headers, body: graph },
      { method: 'POST', path: '/adapters/actions', headers, body: action },
    ]
    const answerTo = async (name: Name, control: Control, asked: Asked) => {
      const { status, text } = await ask(name, control, asked)
      expect([name, status, text]).toEqual([name, 202, text])
      return text
    }
    const answers = new Map<string, string>()
    for (const asked of submissions) {
      for (const name of TENANTS) {
        const answer = await answerTo(name, first, asked)
        expect(await answerTo(name, second, asked)).toBe(answer)
        answers.set(name + asked.path, answer)
      }
    }
    expect(new Set(answers.values()).size).toBe(4)
    expect([...answers.values()]).not.toContain(await answerTo('ops', second, submissions[0]!))

    const submit = async (name: Name, control: Control, id: string, more: object = {}) => {
      const concurrency = { group: 'deploy', ...more }
      const body = { tasks: [{ id, type: 'approval' }], concurrency }
      const { status, text } = await ask(name, control, { method: 'POST', path: '/tasks', body })
      return { status, text, id, graph: JSON.parse(text).graph_id as string }
    }
    /** What the task waits for, once that is `reason`. */
    const waits = async (name: Name, { graph, id }: Awaited<ReturnType<typeof submit>>, reason: string) =>
      until(
        async () => {
          const { status, text } = await ask(name, second, { path: `/graphs/${graph}/tasks/${id}` })
          return status === 200 ? JSON.parse(text).waiting : undefined
        },
        (waiting) => waiting?.reason === reason,
        { patienceMs: 50_000 },
      )
    const held = await submit('a', first, 'held')
    const others = [await submit('b', second, 'held'), await submit('ops', first, 'held')]
    const next = await submit('a', second, 'next')
    const ofGroup = { reason: 'group', group: 'deploy', graphs: [held.graph] }
    for (const kill of [false, true]) {
      if (kill) await first.stop('SIGKILL')
      for (const [i, name] of (['b', 'ops'] as const).entries()) await waits(name, others[i]!, 'approval')
      await waits('a', held, 'approval')
      const isKnown = ({ graphs }: { graphs: string[] }) => graphs.length > 0 // soon after a takeover
      expect(await until(() => waits('a', next, 'group'), isKnown)).toEqual(ofGroup)
      const refused = await submit('a', second, 'now', { on_full: 'refuse' })
      expect([refused.status, refused.text]).toEqual([
        409,
        expect.stringContaining(`graph ${held.graph} has not ended`),
      ])
      const brief = { tasks: [{ id: 'now', type: 'noop' }], concurrency: { group: 'own', on_full: 'refuse' } }
      if (!kill) await submit('b', second, 'own', { group: 'own' })
      const dry = await ask('a', second, { method: 'POST', path: '/tasks?dry_run=true', body: brief })
      expect(JSON.parse(dry.text)).toMatchObject({ valid: true })
    }
    for (const asked of submissions)
      for (const name of TENANTS) expect(await answerTo(name, second, asked)).toBe(answers.get(name + asked.path)!)
    const path = `/graphs/${held.graph}/tasks/held/approve`
    expect((await ask('a', second, { method: 'POST', path, body: { who: 'ada' } })).status).toBe(200)
    await waits('a', next, 'approval')
  })

  test('find their calls at other replicas when tasks poll them, and none of others', async () => {
    using each = await cluster()
    using tokens = tokensFile(PEOPLE)
    const ask = asker(tokens)
    await using first = await start(each, tokens, LONG_LEASE)
    await using second = await start(each, tokens, LONG_LEASE)
    const target = await markedTarget(ask, 'b', first)
    const own = await markedTarget(ask, 'a', first)
    const plain = { tool_name: 'builtin/echo', input: { message: markOf('ops') }, id: 'plain' }
    expect((await ask('ops', first, { method: 'POST', path: '/mcp/call', body: plain })).status).toBe(202)
    const poll = (id: string, handle_id: string) => ({ id, type: 'mcp', tool_name: 'poll', input: { handle_id } })
    const tasks = [
      ...[poll('own', `${own.graph}/${own.call}`), poll('foreign', `${target.graph}/${target.call}`)],
      ...[poll('bare', target.call), poll('of-ops', 'plain'), poll('none', `${UNKNOWN.graph}/none`)],
    ]
    const sent = await ask('a', second, { method: 'POST', path: '/tasks', body: { tasks } })
    const { graph_id } = JSON.parse(sent.text)
    const { text } = await until(
      () => ask('a', second, { path: `/graphs/${graph_id}/tasks` }),
      (answer) => JSON.parse(answer.text).every(({ status }: { status: string }) => /success|failed/.test(status)),
    )
    const [found, ...lost] = JSON.parse(text) as { id: string; status: string }[]
    expect([found!.id, found!.status]).toEqual(['own', 'success'])
    expect(JSON.stringify(found)).toContain(markOf('a'))
    for (const other of lost) expect([other.id, other.status]).toEqual([other.id, 'failed'])
    for (const name of ['b', 'ops'] as const) expect(text).not.toContain(markOf(name))
  })

  test('are told nothing by a replica of a version before tenants, which shows everything to whoever asks', async () => {
    using each = await cluster()
    using tokens = tokensFile(PEOPLE)
    const ask = asker(tokens)
    await using control = await start(each, tokens, LONG_LEASE)
    const own = await markedTarget(ask, 'a', control)
    const foreign = markOf('b')
    let id = 0
    const asked: string[] = []
    using earlier = Bun.serve({
      ...{ port: 0, hostname: '127.0.0.1' },
      fetch(request) {
        const { pathname } = new URL(request.url)
        asked.push(pathname)
        return new Response(
          `${pathname === '/replicas/graphs' ? '1-1' : '1-1-0'} {"task_id":"${foreign}","graph_id":"g","tenant":"b"}\n`,
          {
            headers: { 'x-taskmill-replica': String(id), 'x-taskmill-blocks': String(id) },
          },
        )
      },
    })
    const address = `http://127.0.0.1:${earlier.port}`
    const [row] = await each.server.run(
      `insert into taskmill.replica (address, lease_until, is_sharing)
       values ('${address}', clock_timestamp() + interval '1 hour', true) returning id::int`,
      each.database,
    )
    id = Number(row!.id)
    for (const path of ['/tasks', '/graphs']) {
      const { status, headers, text } = await ask('a', control, { path })
      expect([status, headers.get('x-missing-replicas')]).toEqual([200, String(id)])
      expect([text.includes(own.graph), text.includes(foreign)]).toEqual([true, false])
      expect((await ask('ops', control, { path })).text).toContain(foreign) // the stub answers as a replica does
    }
    await using mcp = await connectClient(control.url, 'auto', tokens.as('a'))
    const { text, data } = await mcp.call('list_tasks')
    expect([text.includes(foreign), data.missing_replicas]).toEqual([false, [id]])
    await using events = await EventStreamClient.open(`${control.url}/events?after=0`, tokens.as('a'))
    expect(JSON.stringify(await events.once((all) => all.some(isOf(own.graph))))).not.toContain(foreign)
    expect([...new Set(asked)]).toEqual(
      expect.arrayContaining(['/replicas/tasks', '/replicas/graphs', '/replicas/newest-tasks', '/replicas/events']),
    )
  })

  test('know of unreadable graphs only their own', async () => {
    using each = await cluster()
    using tokens = tokensFile(PEOPLE)
    const ask = asker(tokens)
    const bad = { a: '', b: '' }
    {
      await using control = await start(each, tokens, LONG_LEASE)
      for (const name of TENANTS) bad[name] = (await markedTarget(ask, name, control)).graph
      await control.stop('SIGKILL')
    }
    await each.server.run(`update taskmill.replica set state = 'dead', epoch = epoch + 1`, each.database)
    await each.server.run(`update taskmill.graph set payload = 't{'`, each.database)
    await using control = await start(each, tokens, LONG_LEASE)
    const unreadable = async (name: Name) =>
      JSON.parse((await ask(name, control, { path: '/graphs?state=unreadable' })).text)
    expect([(await unreadable('ops')).length, await unreadable('a')]).toEqual([2, []])
    const read = (name: Name, graph: string) => ask(name, control, { path: `/graphs/${graph}` })
    expect([(await read('a', bad.b)).status, (await read('a', bad.a)).status]).toEqual([404, 409])
    const remove = async (name: Name, graph: string) =>
      (await ask(name, control, { method: 'DELETE', path: `/graphs/${graph}` })).status
    expect([await remove('a', bad.b), await remove('a', bad.a), await remove('ops', bad.b)]).toEqual([404, 204, 204])
  })
})

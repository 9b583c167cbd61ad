/**
 * Goal: nothing that a tenant is told has anything of others, whatever all of them do, also of what was removed, and after a restart.
 * Method: two tenants and an operator do random things with random marks in every text that they choose. All answers and events
 * of each tenant are searched for the marks and the graphs of the others. Against the built service. `SEED=N` repeats a run.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { RIGHTS } from '../../shared/contract/rights.ts'
import { type Control, startControl } from '../support/control.ts'
import { EventStreamClient } from '../support/event-stream.ts'
import { connectClient } from '../support/mcp-client.ts'
import { randomNumbers, SEED } from '../support/random.ts'
import { tempDir } from '../support/temp.ts'
import { tokensFile } from '../support/tokens.ts'

const TENANTS = ['a', 'b'] as const
const CALLERS = [...TENANTS, 'ops'] as const
type Name = (typeof CALLERS)[number]

/** Further ones follow until each verb has succeeded. */
const STEPS = 240
const MOST_STEPS = 10_000

const pick = randomNumbers(SEED)
const oneOf = <T>(list: readonly T[]): T => list[pick(list.length)]!

/** What nobody but its owner may be told. */
const secrets: Record<Name, Set<string>> = { a: new Set(), b: new Set(), ops: new Set() }
const graphs: Record<Name, string[]> = { a: [], b: [], ops: [] }
const told: Record<Name, string[]> = { a: [], b: [], ops: [] }
/** Answers by what was asked, with their status. */
const outcomes: string[] = []

function mark(name: Name): string {
  const text = `m${crypto.randomUUID().replaceAll('-', '')}`
  secrets[name].add(text)
  return text
}

/** A task of a random type, with marks in all of its texts. */
function taskOf(name: Name, id: string, after: readonly string[]): object {
  const text = () => mark(name)
  const types = [
    () => ({ type: 'noop', params: { message: text() } }),
    () => ({ type: 'shell', params: { command: text() } }),
    () => ({ type: 'mcp', tool_name: 'builtin/echo', input: { message: text() } }),
    () => ({ type: 'approval', params: { message: text() } }),
    () => ({ type: 'wait', params: { signal: true } }),
    () => ({ type: 'noop', params: { message: text() }, for_each: [text(), text()] }),
  ]
  return { id, depends_on: after, ...oneOf(types)() }
}

type Ask = (name: Name, method: string, path: string, body?: unknown, headers?: object) => Promise<string>

const VERBS: Readonly<Record<string, (ask: Ask, name: Name, graph: string) => Promise<unknown>>> = {
  async submit(ask, name) {
    const ids = Array.from({ length: 1 + pick(4) }, () => mark(name))
    const tasks = ids.map((id, i) =>
      taskOf(
        name,
        id,
        ids.slice(0, i).filter(() => pick(3) === 0),
      ),
    )
    const body = {
      ...{ name: mark(name), labels: { [mark(name)]: mark(name), team: 'shared' }, tasks },
      ...(pick(3) === 0 && { concurrency: { group: 'shared', on_full: oneOf(['wait', 'refuse', 'cancel_oldest']) } }),
    }
    const key = { 'idempotency-key': pick(2) === 0 ? 'shared' : mark(name) }
    const { graph_id } = JSON.parse(await ask(name, 'POST', '/tasks', body, key))
    if (graph_id !== undefined) graphs[name].push(graph_id)
  },
  async again(ask, name, graph) {
    const { graph_id } = JSON.parse(await ask(name, 'POST', `/graphs/${graph}/rerun`, {}))
    if (graph_id !== undefined) graphs[name].push(graph_id)
  },
  retry: (ask, name, graph) => ask(name, 'POST', `/graphs/${graph}/retry`),
  cancel: (ask, name, graph) => ask(name, 'POST', `/graphs/${graph}/cancel`),
  pause: (ask, name, graph) => ask(name, 'POST', `/graphs/${graph}/pause`, { why: mark(name) }),
  resume: (ask, name, graph) => ask(name, 'POST', `/graphs/${graph}/resume`),
  patch: (ask, name, graph) => ask(name, 'PATCH', `/graphs/${graph}`, { add: [taskOf(name, mark(name), [])] }),
  remove: (ask, name, graph) => ask(name, 'DELETE', `/graphs/${graph}`),
  approve: (ask, name, graph) => ofTask(ask, name, graph, 'approval', 'approve', { who: mark(name), why: mark(name) }),
  signal: (ask, name, graph) => ofTask(ask, name, graph, 'wait', 'signal', { value: mark(name) }),
  read: (ask, name, graph) => ask(name, 'GET', `/graphs/${graph}?wait_ms=20`),
  list: (ask, name) => ask(name, 'GET', oneOf(['/tasks', '/graphs', '/graphs?label=team=shared', '/tasks?limit=3'])),
  dry: (ask, name) =>
    ask(name, 'POST', '/tasks?dry_run=true', {
      concurrency: { group: 'shared', on_full: 'refuse' },
      tasks: [{ id: 'x', type: 'noop' }],
    }),
}

async function ofTask(ask: Ask, name: Name, graph: string, type: string, verb: string, body: object) {
  const { tasks = [] } = JSON.parse(await ask(name, 'GET', `/graphs/${graph}`)) as {
    tasks?: { id: string; type: string }[]
  }
  const task = tasks.find((each) => each.type === type)
  if (task !== undefined) await ask(name, 'POST', `/graphs/${graph}/tasks/${task.id}/${verb}`, body)
}

/** All that the lists, the streams and the tools tell. */
async function readAll(control: Control, ask: Ask, name: Name, headers: Record<string, string>): Promise<void> {
  for (const path of ['/tasks', '/graphs?limit=100', '/health', '/metrics', '/mcp/tools', '/adapters/tools'])
    await ask(name, 'GET', path)
  for (const graph of graphs[name]) {
    await ask(name, 'GET', `/graphs/${graph}`)
    await ask(name, 'GET', `/graphs/${graph}/tasks`)
  }
  await using mcp = await connectClient(control.url, 'auto', headers)
  told[name].push(JSON.stringify(await mcp.client.listTools()))
  for (const tool of ['list_tasks', 'list_graphs', 'capabilities'])
    told[name].push(JSON.stringify(await mcp.call(tool, {})))
}

/** The events of a stream as lines. A `task_waiting` is not kept, and `previous` is about the stream. */
const linesOf = ({ events }: EventStreamClient) =>
  events.flatMap(({ event, ...data }) =>
    event === 'task_waiting' ? [] : JSON.stringify({ event, ...data, previous: undefined, waiting: undefined }),
  )

test(`random things of two tenants and an operator, seed ${SEED}`, async () => {
  using temp = tempDir()
  using tokens = tokensFile({
    ...{ a: { tenant: 'a', rights: RIGHTS, approve_own: true }, b: { tenant: 'b', rights: RIGHTS, approve_own: true } },
    ops: { rights: RIGHTS, approve_own: true },
  })
  const options = {
    dataDir: join(temp.path, 'data'),
    flags: ['--tokens-file', tokens.path, '--persist-interval', '100ms'],
    env: { SERVICE_TOKEN: 'sesame', SERVICE_SHELL_POLICY: 'open' },
  }
  let control = await startControl(options)
  const ask: Ask = async (name, method, path, body, more = {}) => {
    const answer = await control.fetch(path, {
      ...{ method, headers: { ...more, ...tokens.as(name) } },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await answer.text()
    outcomes.push(`${answer.status}`)
    expect([method, path, answer.status < 500, text]).toEqual([method, path, true, text])
    told[name].push(text, ...answer.headers.values())
    return text || '{}'
  }
  const streamOf = (name: Name, query = '') =>
    EventStreamClient.open(`${control.url}/events${query}`, tokens.as(name) as Record<string, string>)
  const done = new Set<string>()
  try {
    const live = await Promise.all(CALLERS.map(async (name) => [name, await streamOf(name)] as const))
    const isEnough = (step: number) => step >= MOST_STEPS || (step >= STEPS && done.size === Object.keys(VERBS).length)
    for (let step = 0; !isEnough(step); step++) {
      const name = oneOf(CALLERS)
      const verb = graphs[name].length < 3 ? 'submit' : oneOf(Object.keys(VERBS))
      const before = outcomes.length
      await VERBS[verb]!(ask, name, oneOf(graphs[name].slice(-20)))
      if (outcomes.slice(before).at(-1)?.startsWith('2')) done.add(verb)
    }
    expect([...done].sort()).toEqual(Object.keys(VERBS).sort())
    for (const name of CALLERS) {
      const last = { name: mark(name), tasks: [taskOf(name, mark(name), [])] }
      graphs[name].push(JSON.parse(await ask(name, 'POST', '/tasks', last)).graph_id)
    }
    for (const name of CALLERS) await readAll(control, ask, name, tokens.as(name))
    const past: Partial<Record<Name, readonly string[]>> = {}
    /** The kept events of each caller: a tenant has those of the operator that are its own. */
    const lookBack = async () => {
      const end = JSON.parse(
        await ask('ops', 'POST', '/tasks', { tasks: [{ id: mark('ops'), type: 'noop' }] }),
      ).graph_id
      const all = await streamOf('ops', '?after=0')
      const every = await all.once((events) =>
        events.some((event) => event.event === 'graph_ended' && event.graph_id === end),
      )
      await all[Symbol.asyncDispose]()
      for (const name of TENANTS) {
        const own = every.filter((event) => 'tenant' in event && event.tenant === name)
        const stream = await streamOf(name, '?after=0')
        await stream.once((events) => (events.at(-1)?.seq ?? 0) >= own.at(-1)!.seq)
        await stream[Symbol.asyncDispose]()
        const lines = linesOf(stream)
        expect(lines).toEqual(linesOf({ events: own } as unknown as EventStreamClient))
        if (past[name] !== undefined) expect(lines.slice(0, past[name].length)).toEqual([...past[name]])
        past[name] = lines
        told[name].push(...lines)
      }
    }
    await lookBack()
    for (const [name, stream] of live) {
      await stream[Symbol.asyncDispose]()
      told[name].push(...stream.events.map((event) => JSON.stringify(event)))
      expect(stream.events.length).toBeGreaterThan(20)
      if (name !== 'ops') expect(stream.events.every((event) => 'tenant' in event && event.tenant === name)).toBe(true)
    }
    const states = async () =>
      await Promise.all(
        TENANTS.map(async (name) => {
          const list = JSON.parse(await ask(name, 'GET', '/graphs?limit=100')) as { graph_id: string; tenant: string }[]
          return list.map(({ graph_id, tenant }) => [graph_id, tenant])
        }),
      )
    const kept = await states()
    for (const [i, name] of TENANTS.entries()) {
      expect(kept[i]!.length).toBeGreaterThan(0)
      expect(kept[i]!.every(([, tenant]) => tenant === name)).toBe(true)
    }
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await control.stop(signal)
      await control.dispose()
      control = await startControl(options)
      expect(await states()).toEqual(kept)
      await lookBack()
      for (const name of CALLERS) await readAll(control, ask, name, tokens.as(name))
    }
  } finally {
    await control.dispose()
  }
  for (const name of TENANTS) {
    const others = CALLERS.filter((other) => other !== name)
    const foreign = others.flatMap((other) => [...secrets[other], ...graphs[other]])
    const all = told[name].join('\n')
    expect([name, foreign.filter((text) => all.includes(text))]).toEqual([name, []])
    expect(graphs[name].some((graph) => all.includes(graph))).toBe(true)
  }
  const ofOps = told.ops.join('\n')
  for (const name of TENANTS) expect(graphs[name].some((graph) => ofOps.includes(graph))).toBe(true)
}, 120_000)

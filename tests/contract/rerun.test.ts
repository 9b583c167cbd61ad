/**
 * `POST /graphs/{id}/rerun`: a new graph of the same tasks, in which what succeeded keeps its outcome. Goal: only the rest
 * is executed; records, events and disk say where outcomes come from; results in files survive their source. The built
 * executables, across kills.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { RerunResponse } from '../../shared/contract/rerun.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startPair } from '../support/pair.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

let temp: TempDir
beforeEach(() => {
  temp = tempDir()
})
afterEach(() => temp[Symbol.dispose]())

const open = { SERVICE_SHELL_POLICY: 'open' }
let control: Control
beforeAll(async () => {
  control = await startControl({ env: open })
})
afterAll(() => control.dispose())

const large = 'x'.repeat(200_000)

/** A step that notes each of its executions, and fails until the file `fixed` is there. */
const step = (id: string, ...depends_on: string[]) => ({
  ...{ id, type: 'shell', depends_on },
  params: { script: `echo ${id} >> ${temp.path}/ran; echo out-${id}` },
})
const flaky = (id: string, ...depends_on: string[]) => ({
  ...{ id, type: 'shell', depends_on, retry: 1 },
  params: { script: `echo ${id} >> ${temp.path}/ran; test -e ${temp.path}/fixed` },
})
const fix = () => writeFileSync(join(temp.path, 'fixed'), '')
const ran = () => readFileSync(join(temp.path, 'ran'), 'utf8').trim().split('\n').sort()
const forget = () => writeFileSync(join(temp.path, 'ran'), '')

const TASKS = () => [step('a'), step('b', 'a'), flaky('c', 'b'), step('d', 'c'), step('e')]

const numbers = (count: number) => Array.from({ length: count }, (_, i) => [`p${i}`, i])

async function run(control: Control, graph: object): Promise<GraphDetails> {
  const response = await control.post(graph)
  expect(response.status).toBe(202)
  return ended(control, ((await response.json()) as RerunResponse).graph_id)
}

const ended = (control: Control, id: string): Promise<GraphDetails> =>
  until(
    async () => (await (await control.fetch(`/graphs/${id}?wait_ms=20000`)).json()) as GraphDetails,
    ({ state }) => state !== 'running',
  )

const ask = (control: Control, id: string, body?: object | null, headers: Record<string, string> = {}) =>
  control.fetch(`/graphs/${id}/rerun`, {
    ...{ method: 'POST', headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

async function rerun(control: Control, id: string, body?: object): Promise<RerunResponse> {
  const response = await ask(control, id, body)
  expect([response.status, response.headers.get('content-type')]).toEqual([202, expect.stringContaining('json')])
  return (await response.json()) as RerunResponse
}

async function refusal(control: Control, id: string, body?: object): Promise<unknown[]> {
  const response = await ask(control, id, body)
  return [response.status, ((await response.json()) as { error: string }).error]
}

const recordIn = async (control: Control, graphId: string, id: string): Promise<TaskRecord> =>
  (await (await control.fetch(`/graphs/${graphId}/tasks/${id}`)).json()) as TaskRecord

describe('a rerun', () => {
  test('executes what did not succeed and what lies downstream, and reuses the rest', async () => {
    const labels = { team: 'web' }
    const source = await run(control, { name: 'nightly', labels, tasks: TASKS() })
    expect(source.state).toBe('failed')
    const first = await control.get('a')
    const { tasks_total, tasks_succeeded } = await control.metrics()
    fix()
    forget()
    const { graph_id, ...answer } = await rerun(control, source.graph_id)
    expect(answer).toEqual({ accepted: 5, task_ids: ['a', 'b', 'c', 'd', 'e'], reused: ['a', 'b', 'e'] })
    const graph = await ended(control, graph_id)
    expect(graph).toMatchObject({ name: 'nightly', labels, state: 'success', counts: { success: 5 } })
    expect(graph.critical_path.task_ids).toEqual(['c', 'd'])
    expect(ran()).toEqual(['c', 'd'])
    const again = await control.get('a')
    expect(again).toEqual({
      ...first,
      ...{ graph_id, created_at: again.created_at, updated_at: again.updated_at },
      reused_from: { graph_id: source.graph_id, task_id: 'a' },
    })
    expect(again.created_at >= first.finished_at!).toBe(true)
    expect(await (await control.fetch('/tasks/a/logs')).text()).toBe('out-a\n')
    expect(await recordIn(control, source.graph_id, 'a')).toMatchObject({ replaced: true, status: 'success' })
    expect(await control.get('d')).not.toHaveProperty('reused_from')
    const metrics = await control.metrics()
    expect([metrics.tasks_total - tasks_total, metrics.tasks_succeeded - tasks_succeeded]).toEqual([5, 2])
  })

  test('executes named tasks and what lies downstream, too; of a reused outcome it names the origin', async () => {
    await using control = await startControl({ env: open })
    fix()
    const source = await run(control, { scope: 'graph', tasks: TASKS() })
    forget()
    const second = await rerun(control, source.graph_id, { from: ['c'] })
    expect(second.reused).toEqual(['a', 'b', 'e'])
    expect(await ended(control, second.graph_id)).toMatchObject({ state: 'success', scope: 'graph' })
    expect(ran()).toEqual(['c', 'd'])
    const third = await rerun(control, second.graph_id, { from: ['b', 'e'] })
    expect(third.reused).toEqual(['a'])
    await ended(control, third.graph_id)
    expect(await recordIn(control, third.graph_id, 'a')).toMatchObject({
      reused_from: { graph_id: source.graph_id, task_id: 'a' },
      result: { stdout: 'out-a\n' },
    })
    expect(await control.list()).toEqual([])
  })

  test('decides again about tasks with rules', async () => {
    const tasks = [
      flaky('work'),
      { ...step('alarm', 'work', 'e'), run_if: 'failed' },
      { ...step('clean', 'work', 'e'), run_if: 'always' },
      step('e'),
    ]
    const source = await run(control, { scope: 'graph', tasks })
    expect(source.counts).toEqual({ success: 3, failed: 1 })
    fix()
    forget()
    const { graph_id, reused } = await rerun(control, source.graph_id)
    expect(reused).toEqual(['e'])
    expect((await ended(control, graph_id)).counts).toEqual({ success: 3, skipped: 1 })
    expect(await recordIn(control, graph_id, 'alarm')).toMatchObject({
      status: 'skipped',
      error: 'no dependency failed',
    })
    expect(ran()).toEqual(['clean', 'work'])
    const third = await rerun(control, graph_id)
    expect(third.reused).toEqual(['work', 'clean', 'e'])
    expect((await ended(control, third.graph_id)).counts).toEqual({ success: 3, skipped: 1 })
  })

  test('gives reused values and new parameters to the tasks that run', async () => {
    const echo = (id: string, args: unknown[], ...depends_on: string[]) => ({
      ...{ id, type: 'shell', depends_on },
      params: { command: 'echo', args },
    })
    const tasks = [
      echo('version', [{ $param: 'version' }]),
      flaky('build', 'version'),
      echo('release', [{ $from: 'version', path: '/result/stdout' }, { $param: 'version' }], 'version', 'build'),
    ]
    const source = await run(control, { scope: 'graph', params: { version: '1' }, tasks })
    fix()
    const { graph_id, reused } = await rerun(control, source.graph_id, { params: { version: '2' } })
    expect(reused).toEqual(['version'])
    await ended(control, graph_id)
    const before = await recordIn(control, source.graph_id, 'version')
    const kept = await recordIn(control, graph_id, 'version')
    expect(kept).toMatchObject({ result: { stdout: '1\n' }, resolved_input: { args: ['1'] } })
    expect(kept.resolved_input).toEqual(before.resolved_input)
    expect(await recordIn(control, graph_id, 'release')).toMatchObject({
      status: 'success',
      resolved_input: { args: ['1\n', '2'] },
    })
    expect(await refusal(control, graph_id, { params: { verson: '3' } })).toEqual([
      400,
      `graph ${graph_id} has no parameter "verson" (did you mean "version"?)`,
    ])
    expect(await refusal(control, graph_id, { from: ['build'], params: { version: null } })).toEqual([
      400,
      'graph needs parameter version',
    ])
    expect(await refusal(control, graph_id, { params: [] })).toEqual([
      400,
      'invalid JSON: params: expected object of at most 256 parameters',
    ])
  })

  test('is refused with a reason', async () => {
    const source = await run(control, { tasks: TASKS() })
    const { graph_id: id } = source
    expect(await refusal(control, 'none')).toEqual([404, 'graph not found: none'])
    expect(await refusal(control, id, { from: ['x'] })).toEqual([400, `graph ${id} has no task x`])
    const expected = 'invalid JSON: from: expected "failed" or an array of 1 to 100000 ids'
    for (const from of ['all', [], [7], 7]) expect(await refusal(control, id, { from })).toEqual([400, expected])
    expect(await refusal(control, id, { form: 'failed' })).toEqual([400, 'unknown field "form" (did you mean "from"?)'])
    expect(await refusal(control, id, [])).toEqual([400, 'invalid JSON: expected object, got array'])
    const live = await control.submit([{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }])
    expect(await refusal(control, live.graph_id)).toEqual([409, `graph is still running: ${live.graph_id}`])
    const busy = await run(control, { tasks: [flaky('x')] })
    await control.submit([{ id: 'x', type: 'sleep', params: { duration_ms: 600_000 } }])
    expect(await refusal(control, busy.graph_id)).toEqual([
      409,
      expect.stringContaining('task already active: x (in graph '),
    ])
    fix()
    const { graph_id } = await rerun(control, id, {})
    await ended(control, graph_id)
    expect(await refusal(control, graph_id)).toEqual([
      409,
      `nothing to run: all tasks of graph ${graph_id} succeeded (name tasks in "from")`,
    ])
    await control.fetch(`/graphs/${graph_id}/tasks/a`, { method: 'DELETE' })
    expect(await refusal(control, graph_id, { from: ['c'] })).toEqual([
      409,
      `task a of graph ${graph_id} was deleted, and task b depends on it: submit the graph again`,
    ])
  })

  test('with far too many ids or parameters is refused with the limit', async () => {
    const { graph_id: id } = await run(control, { tasks: [step('a')] })
    const ask = async (body: string): Promise<unknown[]> => {
      const response = await control.fetch(`/graphs/${id}/rerun`, { method: 'POST', body })
      return [response.status, ((await response.json()) as { error: string }).error]
    }
    const ids = 'invalid JSON: from: expected "failed" or an array of 1 to 100000 ids'
    expect(await ask(`{"from":[${'"a",'.repeat(1_000_000)}"a"]}`)).toEqual([400, ids])
    const names = (count: number) => JSON.stringify({ params: Object.fromEntries(numbers(count)) })
    const few = 'invalid JSON: params: expected object of at most 256 parameters'
    expect(await ask(names(257))).toEqual([400, few])
    expect(await ask(names(200_000))).toEqual([400, 'invalid JSON: params: more than 1000 fields'])
  })

  test('with an Idempotency-Key is made once, also after a restart', async () => {
    const options = { dataDir: join(temp.path, 'data'), env: open }
    const key = { 'idempotency-key': 'again' }
    let first = ''
    let id = ''
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await using control = await startControl(options)
      if (id === '') id = (await run(control, { tasks: TASKS() })).graph_id
      const answer = await (await ask(control, id, {}, key)).text()
      if (first === '') first = answer
      expect(answer).toBe(first)
      // All of these ask for the same.
      for (const body of [undefined, null, { from: null }]) {
        expect(await (await ask(control, id, body, key)).text()).toBe(first)
      }
      expect((await ask(control, id, { from: ['a'] }, key)).status).toBe(422)
      await ended(control, (JSON.parse(answer) as RerunResponse).graph_id)
      await control.stop(signal)
    }
  })

  test('tells reused outcomes as events, before what happens in the graph', async () => {
    const source = await run(control, { tasks: TASKS() })
    fix()
    const { graph_id } = await rerun(control, source.graph_id)
    await ended(control, graph_id)
    const text = await (await control.fetch(`/graphs/${graph_id}/events?after=0&until=ended`)).text()
    const events = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? JSON.parse(line.slice(6)) : []))
    const told = events.filter(({ reused_from }) => reused_from !== undefined)
    expect(told).toMatchObject(
      ['a', 'b', 'e'].map((id) => ({
        ...{ task_id: id, status: 'success', run_status: 'success', attempt: 1 },
        reused_from: { graph_id: source.graph_id, task_id: id },
      })),
    )
    expect(events.findIndex(({ reused_from }) => reused_from !== undefined)).toBe(1)
    expect(events.at(-1)).toMatchObject({ state: 'success', counts: { success: 5 } })
  })
})

describe('on disk', () => {
  test('a kill right after the answer leaves the whole graph, with its outcomes', async () => {
    const options = { dataDir: join(temp.path, 'data'), env: open, flags: ['--persist-interval', '1h'] }
    let answer: RerunResponse | undefined
    const tasks = [...TASKS(), { id: 'big', type: 'noop', params: { message: large } }]
    for (const round of [0, 1, 2]) {
      await using control = await startControl(options)
      if (round === 0) {
        const { graph_id } = await run(control, { scope: 'graph', tasks })
        fix()
        forget()
        answer = await rerun(control, graph_id)
        await control.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })
        control.process.kill('SIGKILL')
        await control.process.exited
        continue
      }
      const { graph_id, reused } = answer!
      expect(reused).toEqual(['a', 'b', 'e', 'big'])
      expect(await ended(control, graph_id)).toMatchObject({ state: 'success', counts: { success: 6 } })
      for (const id of reused) {
        expect(await recordIn(control, graph_id, id)).toMatchObject({ status: 'success', reused_from: { task_id: id } })
      }
      expect(await recordIn(control, graph_id, 'big')).toMatchObject({ result: { message: large } })
      const text = await (await control.fetch(`/graphs/${graph_id}/events?after=0&until=ended`)).text()
      expect(text.match(/"reused_from"/g)).toHaveLength(4)
      await control.stop('SIGTERM') // writes the state file, from which the next round starts
    }
    expect(ran().filter((id) => id !== 'c' && id !== 'd')).toEqual([])
  })

  test('a source that has to make room for its rerun leaves it its outcomes', async () => {
    const flags = ['--max-stored-tasks', '3', '--persist-interval', '20ms']
    for (const scope of ['graph', undefined]) {
      await using control = await startControl({ env: open, flags })
      const big = { id: 'big', type: 'noop', params: { message: large } }
      const source = await run(control, { scope, tasks: [step('a'), big, { ...flaky('c', 'a', 'big') }] })
      const { graph_id } = await rerun(control, source.graph_id)
      await ended(control, graph_id)
      expect((await control.fetch(`/graphs/${source.graph_id}`)).status).toBe(404)
      const { graph_id: after } = await rerun(control, graph_id)
      await ended(control, after)
      const stateFile = join(control.dataDir, 'state.json')
      await until(
        () => existsSync(stateFile) && readFileSync(stateFile, 'utf8'),
        (state) => state !== false && state.includes(after) && !state.includes(`"graph_id":"${graph_id}","created`),
      )
      expect(await recordIn(control, after, 'big')).toMatchObject({
        result: { message: large },
        reused_from: { graph_id: source.graph_id, task_id: 'big' },
      })
    }
  })

  test('a result in a file goes with the last graph that has it', async () => {
    const options = { dataDir: join(temp.path, 'data'), env: open, flags: ['--persist-interval', '20ms'] }
    const files = () => readdirSync(join(options.dataDir, 'results'))
    let ids: string[] = []
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await using control = await startControl(options)
      if (ids.length === 0) {
        const big = { id: 'big', type: 'noop', params: { message: large } }
        const source = await run(control, { scope: 'graph', tasks: [big, flaky('c', 'big')] })
        const copies = [await rerun(control, source.graph_id), await rerun(control, source.graph_id)]
        ids = [source, ...copies].map(({ graph_id }) => graph_id)
        for (const id of ids) await ended(control, id)
        await refusal(control, ids[0]!, { from: ['none'] })
        await control.fetch(`/graphs/${ids.shift()}`, { method: 'DELETE' })
      } else {
        await control.fetch(`/graphs/${ids.shift()}`, { method: 'DELETE' })
        const { graph_id } = await control.run({ id: 'after', type: 'noop' }) // one more state file
        await until(
          () =>
            existsSync(join(options.dataDir, 'state.json')) &&
            readFileSync(join(options.dataDir, 'state.json'), 'utf8'),
          (state) => state !== false && state.includes(graph_id),
        )
        expect(files()).toHaveLength(1)
        expect(await recordIn(control, ids[0]!, 'big')).toMatchObject({ result: { message: large } })
        await control.fetch(`/graphs/${ids.shift()}`, { method: 'DELETE' })
        await until(files, (names) => names.length === 0)
      }
      await control.stop(signal)
    }
  })
})

test('the attempt of a runtime task stays with the source, and its result with the rerun', async () => {
  await using pair = await startPair({ controlFlags: ['--persist-interval', '20ms'] })
  const { control, runtime } = pair
  const script = { id: 's', type: 'runtime.script', params: { script: 'echo hi', env: { TOKEN: 'secret' } } }
  const failing = { id: 'f', type: 'runtime.script', params: { script: 'exit 3' }, depends_on: ['s'] }
  const source = await run(control, { scope: 'graph', tasks: [script, failing] })
  const { graph_id } = await rerun(control, source.graph_id)
  await ended(control, graph_id)
  const { handle_id } = await recordIn(control, source.graph_id, 's')
  const reused = await recordIn(control, graph_id, 's')
  expect(reused).toMatchObject({ result: { stdout: 'hi\n' }, input: { env: { TOKEN: '***' } } })
  expect(reused).not.toHaveProperty('handle_id')
  await control.fetch(`/graphs/${graph_id}`, { method: 'DELETE' })
  expect((await runtime.fetch(`/api/v1/tasks/${handle_id}`)).status).toBe(200)
  const third = await rerun(control, source.graph_id, { from: ['s'] })
  expect(third.reused).toEqual([])
  await ended(control, third.graph_id)
  expect(await recordIn(control, third.graph_id, 's')).toMatchObject({ status: 'success' })
})

test('rerun_graph does the same for agents', async () => {
  await using mcp = await connectClient(control.url)
  const source = await run(control, { scope: 'graph', tasks: TASKS() })
  fix()
  const { data, isError } = await mcp.call('rerun_graph', { graph_id: source.graph_id })
  expect(isError).toBe(false)
  expect(data).toMatchObject({ accepted: 5, reused: ['a', 'b', 'e'].map((id) => `${data.graph_id}/${id}`) })
  expect((await mcp.call('wait', { graph_id: data.graph_id })).data).toMatchObject({ all_terminal: true })
  expect((await mcp.call('get_task', { task_id: data.reused[0], detail: true })).data).toMatchObject({
    reused_from: { graph_id: source.graph_id, task_id: 'a' },
  })
  const again = await mcp.call('rerun_graph', { graph_id: data.graph_id, from: [`${data.graph_id}/d`, 'e'] })
  expect(again.data).toMatchObject({ reused: ['a', 'b', 'c'].map((id) => `${again.data.graph_id}/${id}`) })
  const other = await mcp.call('rerun_graph', { graph_id: data.graph_id, from: [`${source.graph_id}/d`] })
  expect(other.text).toContain(`graph ${data.graph_id} has no task ${source.graph_id}/d`)
  const call = { graph_id: data.graph_id, from: ['e'], wait_ms: 30_000, idempotency_key: 'waits' }
  const waited = await mcp.call('rerun_graph', call)
  expect(waited.data).toMatchObject({ accepted: data.accepted, all_terminal: true })
  expect((await mcp.call('rerun_graph', call)).data).toEqual(waited.data)
  expect(await control.fetch(`/graphs/${waited.data.graph_id}`, { method: 'DELETE' })).toMatchObject({ status: 204 })
  expect((await mcp.call('rerun_graph', call)).data).toMatchObject({ graph_id: waited.data.graph_id, tasks: [] })
  const refused = await mcp.call('rerun_graph', { graph_id: data.graph_id })
  expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining('nothing to run')])
})

/**
 * Ids that belong to their graph: graphs with `"scope": "graph"`, and tasks whose ids another graph has taken. Both are
 * reached below their graph, by HTTP and MCP, and survive a crash and a restart.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CancelResponse, ErrorResponse, TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const sleep = (id: string) => ({ id, type: 'sleep', params: { duration_ms: 600_000 } })
const AT_ONCE = ['--shutdown-timeout', '0s', '--kill-grace', '100ms']

async function submitted(control: Control, graph: object, headers = {}): Promise<SubmitResponse> {
  const response = await control.post(graph, headers)
  expect(response.status).toBe(202)
  return (await response.json()) as SubmitResponse
}

const scoped = (control: Control, ...tasks: object[]) => submitted(control, { scope: 'graph', tasks })

const pathOf = (graphId: string, id: string) => `/graphs/${graphId}/tasks/${encodeURIComponent(id)}`

/** The record of a task below its graph, or the status and text of the error. */
async function below(control: Control, graphId: string, id: string): Promise<TaskRecord> {
  const response = await control.fetch(`${pathOf(graphId, id)}?wait_ms=1`)
  if (response.status !== 200) throw new Error(`${response.status} ${((await response.json()) as ErrorResponse).error}`)
  return (await response.json()) as TaskRecord
}

const endedBelow = (control: Control, graphId: string, id: string) =>
  until(
    () => below(control, graphId, id),
    ({ status }) => isTerminal(status),
  )

const listBelow = async (control: Control, graphId: string, query = ''): Promise<TaskRecord[]> =>
  (await (await control.fetch(`/graphs/${graphId}/tasks${query}`)).json()) as TaskRecord[]

const statuses = (records: readonly TaskRecord[]) => records.map(({ id, status }) => `${id} ${status}`)

describe('graphs with ids of their own', () => {
  test('run side by side from the same file, and only they know their tasks', async () => {
    await using control = await startControl({ flags: AT_ONCE })
    const file = [noop('first'), sleep('long'), noop('last', 'long')]
    const [one, two] = [await scoped(control, ...file), await scoped(control, ...file)]
    await control.submit([noop('first')])
    await control.ended('first')
    for (const { graph_id, task_ids } of [one, two]) {
      expect(task_ids).toEqual(['first', 'long', 'last'])
      expect(await endedBelow(control, graph_id, 'first')).toMatchObject({ id: 'first', graph_id, status: 'success' })
    }
    expect((await control.list()).map(({ graph_id }) => graph_id)).not.toContain(one.graph_id)
    expect(await (await control.fetch(`/graphs/${one.graph_id}`)).json()).toMatchObject({ scope: 'graph' })
    expect(await (await control.fetch(`/tasks?graph_id=${one.graph_id}`)).json()).toEqual([])
    for (const init of [{}, { method: 'DELETE' }]) {
      expect((await control.fetch('/tasks/last', init)).status).toBe(404)
      expect((await control.fetch(`/tasks/${encodeURIComponent(`${one.graph_id}/last`)}`, init)).status).toBe(404)
    }
    expect(statuses(await listBelow(control, one.graph_id, '?status=success,pending'))).toEqual([
      'first success',
      'last pending',
    ])
    const page = await control.fetch(`/graphs/${two.graph_id}/tasks?limit=2`)
    expect(((await page.json()) as TaskRecord[]).map(({ id }) => id)).toEqual(['first', 'long'])
    const cursor = page.headers.get('x-next-cursor')
    expect((await listBelow(control, two.graph_id, `?limit=2&cursor=${cursor}`)).map(({ id }) => id)).toEqual(['last'])
  })

  test('are waited for, cancelled and deleted by paths below the graph', async () => {
    await using control = await startControl({ flags: AT_ONCE })
    const file = [sleep('long/er'), noop('last', 'long/er')]
    const [one, two] = [await scoped(control, ...file), await scoped(control, ...file)]
    const path = pathOf(one.graph_id, 'long/er')
    await until(
      () => below(control, one.graph_id, 'long/er'),
      ({ status }) => status === 'running',
    )
    const waiting = control.fetch(`${path}?wait_ms=60000`)
    const cancelled = await control.fetch(`${path}/cancel`, { method: 'POST' })
    expect(cancelled.status).toBe(202)
    expect(((await cancelled.json()) as CancelResponse).tasks.map(({ task_id }) => task_id)).toEqual(['long/er'])
    expect(((await (await waiting).json()) as TaskRecord).status).toBe('cancelled')
    expect(statuses(await listBelow(control, two.graph_id))).toEqual(['long/er running', 'last pending'])

    expect((await control.fetch(path, { method: 'DELETE' })).status).toBe(204)
    expect((await control.fetch(pathOf(one.graph_id, 'last'), { method: 'DELETE' })).status).toBe(204)
    const refusal = async (path: string, init = {}) => {
      const response = await control.fetch(path, init)
      return `${response.status} ${((await response.json()) as ErrorResponse).error}`
    }
    const noGraph = `404 graph not found: ${one.graph_id}`
    expect(await refusal(path)).toBe(noGraph)
    expect(await refusal(`/graphs/${one.graph_id}/tasks`)).toBe(noGraph)
    expect(await refusal(pathOf(two.graph_id, 'none'), { method: 'DELETE' })).toBe(
      `404 task not found: none in graph ${two.graph_id}`,
    )
    expect(await refusal(`/graphs/${two.graph_id}/tasks?graph_id=x`)).toStartWith(
      '400 unknown query parameter "graph_id"',
    )
  })

  test('have each id once, and are told so as all graphs are', async () => {
    await using control = await startControl()
    const refusal = async (graph: object) => {
      const response = await control.post(graph)
      return `${response.status} ${((await response.json()) as ErrorResponse).error}`
    }
    const many = Array.from({ length: 300 }, (_, i) => noop(`t${i}`))
    for (const tasks of [
      [noop('a'), noop('a')],
      [...many, noop('t0')],
    ])
      expect(await refusal({ scope: 'graph', tasks })).toBe(`400 duplicate task id: ${tasks.at(-1)!.id}`)
    for (const scope of ['service', '', 1, {}])
      expect(await refusal({ scope, tasks: many })).toBe('400 invalid JSON: scope: expected "graph"')
    const { graph_id } = await submitted(control, { scope: 'graph', tasks: many })
    expect((await endedBelow(control, graph_id, 't299')).status).toBe('success')
    expect((await submitted(control, { scope: null, tasks: [noop('a')] })).accepted).toBe(1)
    expect((await control.ended('a')).status).toBe('success')
  })

  test('get the first answer for the same key', async () => {
    await using control = await startControl()
    const graph = { scope: 'graph', tasks: [noop('a')] }
    const key = { 'idempotency-key': 'once' }
    expect(await submitted(control, graph, key)).toEqual(await submitted(control, graph, key))
  })

  test('are addressed by agents as graph_id/task_id', async () => {
    await using control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' }, flags: AT_ONCE })
    await using mcp = await connectClient(control.url)
    const tasks = [{ id: 'a', type: 'shell', params: { script: 'echo one' } }, sleep('b')]
    const call = { scope: 'graph', tasks, idempotency_key: 'k' }
    const { graph_id, task_ids } = (await mcp.call('submit_graph', call)).data
    const [a, b] = [`${graph_id}/a`, `${graph_id}/b`]
    expect(task_ids).toEqual([a, b])
    expect((await mcp.call('submit_graph', { ...call, wait_ms: 1 })).data).toMatchObject({ graph_id, task_ids: [a, b] })
    expect((await mcp.call('wait', { task_ids: [a], detail: true })).data).toMatchObject({
      all_terminal: true,
      tasks: [{ id: a, graph_id, status: 'success' }],
    })
    expect((await mcp.call('get_task', { task_id: a, detail: true })).data).toMatchObject({ id: a, status: 'success' })
    expect((await mcp.call('get_logs', { task_id: a })).data).toMatchObject({ task_id: a, text: 'one\n' })
    expect((await mcp.call('list_tasks', { graph_id })).data.tasks.map(({ id }: { id: string }) => id)).toEqual([b, a])
    expect((await mcp.call('list_tasks')).data.tasks).toEqual([])
    expect((await mcp.call('wait', { graph_id, timeout_ms: 1 })).data.counts).toMatchObject({ success: 1 })
    expect((await mcp.call('get_task', { task_id: 'a', detail: true })).text).toStartWith('task not found: a')
    expect((await mcp.call('get_task', { task_id: `${graph_id}/c`, detail: true })).text).toStartWith(
      `task not found: c in graph ${graph_id}`,
    )
    expect((await mcp.call('cancel', { task_ids: [b] })).data).toEqual({ tasks: [{ id: b, status: 'cancelling' }] })
    // The id of a task comes first.
    await control.submit([noop(a)])
    expect((await mcp.call('get_task', { task_id: a, detail: true })).data.tool).toBe('os/noop')
  })

  test('survive a crash, and run on after it', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    let graphs: string[]
    {
      await using control = await startControl({ dataDir, flags: [...AT_ONCE, '--persist-interval', '1h'] })
      const file = [noop('first'), sleep('long')]
      graphs = [(await scoped(control, ...file)).graph_id, (await scoped(control, ...file)).graph_id]
      for (const graph of graphs) await endedBelow(control, graph, 'first')
      await control.fetch(`${pathOf(graphs[0]!, 'long')}/cancel`, { method: 'POST' })
      await control.stop('SIGKILL')
    }
    for (let starts = 0; starts < 2; starts++) {
      await using control = await startControl({ dataDir, flags: AT_ONCE })
      expect((await endedBelow(control, graphs[0]!, 'long')).status).toBe('cancelled')
      expect((await below(control, graphs[1]!, 'first')).status).toBe('success')
      expect(isTerminal((await below(control, graphs[1]!, 'long')).status)).toBe(false)
      expect(await control.list()).toEqual([])
      expect(await control.stop()).toBe(0)
      const entries = Object.entries(
        JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8')) as Record<string, object>,
      )
      expect(entries.map(([key]) => key)).toEqual(graphs.flatMap((graph) => [`${graph}/first`, `${graph}/long`]))
      for (const [, entry] of entries) expect(entry).toMatchObject({ scope: 'graph' })
    }
  })
})

describe('a graph whose task was replaced', () => {
  test('keeps the record, which is read, listed and deleted below the graph, also after a crash', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    const large = { id: 'a', type: 'shell', params: { script: "head -c 200000 /dev/zero | tr '\\0' x" } }
    const env = { SERVICE_SHELL_POLICY: 'open' }
    let old: string
    let later: string
    {
      await using control = await startControl({ dataDir, env, flags: ['--persist-interval', '1h'] })
      old = (await control.submit([large, noop('b', 'a')])).graph_id
      await control.allEnded()
      later = (await control.submit([noop('a')])).graph_id
      await control.ended('a')
      await control.stop('SIGKILL')
    }
    for (let starts = 0; starts < 3; starts++) {
      await using control = await startControl({ dataDir, env })
      expect((await control.get('a')).graph_id).toBe(later)
      expect(await control.get('a')).not.toHaveProperty('replaced')
      const record = await below(control, old, 'a')
      expect(record).toMatchObject({ id: 'a', graph_id: old, status: 'success', replaced: true })
      expect((record.result as { stdout: string }).stdout).toHaveLength(200_000)
      expect(statuses(await listBelow(control, old))).toEqual(['a success', 'b success'])
      expect((await control.list()).map(({ id, graph_id }) => [id, graph_id])).toEqual([
        ['b', old],
        ['a', later],
      ])
      await using mcp = await connectClient(control.url)
      expect((await mcp.call('wait', { graph_id: old })).data.tasks).toMatchObject([{ id: `${old}/a` }, { id: 'b' }])
      expect(await control.stop(starts === 0 ? 'SIGKILL' : 'SIGTERM')).toBe(starts === 0 ? 'SIGKILL' : 0)
    }
    await using control = await startControl({ dataDir, env })
    expect((await control.fetch(pathOf(old, 'a'), { method: 'DELETE' })).status).toBe(204)
    await expect(below(control, old, 'a')).rejects.toThrow(`404 task not found: a in graph ${old}`)
    expect((await control.get('a')).graph_id).toBe(later)
    expect((await control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
    expect((await control.fetch('/tasks/a')).status).toBe(404)
  })

  test('has the end of that task on disk before the graph that replaces it', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    for (let round = 0; round < 3; round++) {
      const id = `a${round}`
      let old: string
      {
        await using control = await startControl({ dataDir, flags: AT_ONCE })
        old = (await control.submit([noop(id), { ...sleep(`after-${id}`), depends_on: [id] }])).graph_id
        // Nobody looks at the task before it is replaced, which would write its state down.
        await until(
          () => control.post({ tasks: [noop(id)] }),
          ({ status }) => status === 202,
        )
        await control.stop('SIGKILL')
      }
      await using control = await startControl({ dataDir, flags: AT_ONCE })
      expect(await below(control, old, id)).toMatchObject({ status: 'success', replaced: true })
      await control.reached(`after-${id}`, 'running')
    }
  })

  test('counts for --max-stored-tasks, and goes with its graph', async () => {
    await using control = await startControl({ flags: ['--max-stored-tasks', '4'] })
    const graphs: string[] = []
    for (let i = 0; i < 3; i++) {
      graphs.push((await control.submit([noop('a'), noop('b')])).graph_id)
      await control.ended('a')
      await control.ended('b')
    }
    await expect(below(control, graphs[0]!, 'a')).rejects.toThrow(`404 graph not found: ${graphs[0]}`)
    expect(statuses(await listBelow(control, graphs[1]!))).toEqual(['a success', 'b success'])
    expect((await control.get('a')).graph_id).toBe(graphs[2]!)
  })

  test('shows which of its tasks were replaced', async () => {
    await using control = await startControl()
    const { graph_id } = await control.submit([noop('a'), noop('b')])
    await control.allEnded()
    await control.submit([noop('b')])
    const graph = await control.fetch(`/graphs/${graph_id}`)
    expect(((await graph.json()) as GraphDetails).tasks.map(({ id, replaced }) => [id, replaced])).toEqual([
      ['a', undefined],
      ['b', true],
    ])
  })

  test('is where a replayed key finds its tasks', async () => {
    await using control = await startControl()
    await using mcp = await connectClient(control.url)
    const call = { tasks: [noop('a')], idempotency_key: 'k', wait_ms: 10_000 }
    const { graph_id } = (await mcp.call('submit_graph', call)).data
    await control.submit([noop('a')])
    expect((await mcp.call('submit_graph', call)).data).toMatchObject({ graph_id, tasks: [{ id: `${graph_id}/a` }] })
  })
})

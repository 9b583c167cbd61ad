/** POST /tasks?wait_ms=N. Source: docs/http.md, "Submit and wait". */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const noop = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })

async function submit(query: string, tasks: object[], headers: Record<string, string> = {}): Promise<SubmitResponse> {
  const response = await control.fetch(`/tasks${query}`, { method: 'POST', headers, body: JSON.stringify({ tasks }) })
  expect(response.status).toBe(202)
  const answer = (await response.json()) as SubmitResponse
  expect(Value.Check(SubmitResponse, answer)).toBe(true)
  return answer
}

const reached = (gate: Gate, arrivals: number) => until(() => gate.arrivals, arrivals)

describe('a submission that waits', () => {
  test('is answered with the states of the tasks once all have ended', async () => {
    using gate = new Gate()
    const waiting = submit('?wait_ms=60000', [gate.task('a'), noop('b', 'a'), noop('c')])
    await reached(gate, 1)
    gate.open(404)
    expect(await waiting).toEqual({
      ...{ accepted: 3, task_ids: ['a', 'b', 'c'], graph_id: expect.any(String), all_terminal: true },
      tasks: [
        { id: 'a', status: 'failed' },
        { id: 'b', status: 'skipped' },
        { id: 'c', status: 'success' },
      ],
    })
  })

  test('is answered with the states as they are when the time is up', async () => {
    using gate = new Gate()
    const { tasks, all_terminal } = await submit('?wait_ms=50', [gate.task('held'), noop('after', 'held')])
    expect(all_terminal).toBe(false)
    expect(tasks!.map(({ status }) => status)).toEqual(['running', 'pending'])
    gate.open()
  })

  test('keeps its warnings', async () => {
    const { warnings, tasks } = await submit('?wait_ms=60000', [
      { id: 'w', type: 'sleep', params: { duration_ms: -1 } },
    ])
    expect(warnings).toHaveLength(1)
    expect(tasks).toEqual([{ id: 'w', status: 'failed' }])
  })

  test('does not take the graph back when its caller goes while it waits', async () => {
    using gate = new Gate()
    const gone = new AbortController()
    const body = JSON.stringify({ tasks: [gate.task('left')] })
    const waiting = fetch(`${control.url}/tasks?wait_ms=60000`, { method: 'POST', body, signal: gone.signal })
    await reached(gate, 1)
    gone.abort()
    await expect(waiting).rejects.toThrow()
    gate.open()
    expect((await control.ended('left')).status).toBe('success')
  })

  test('and is repeated gets its first answer with the states of now', async () => {
    using gate = new Gate()
    const key = { 'idempotency-key': 'again' }
    const graph = [gate.task('k1'), noop('k2', 'k1')]
    const first = await submit('?wait_ms=20', graph, key)
    expect(first.all_terminal).toBe(false)
    const repeated = submit('?wait_ms=60000', graph, key)
    gate.open()
    const states = ['k1', 'k2'].map((id) => ({ id, status: 'success' as const }))
    expect(await repeated).toEqual({ ...first, tasks: states, all_terminal: true })
    expect(await submit('', graph, key)).toEqual({
      ...{ accepted: first.accepted, task_ids: first.task_ids, graph_id: first.graph_id },
    })
  })

  test.each(['-1', '60001', '1.5', 'x'])('for wait_ms=%s is refused, and nothing is stored', async (ms) => {
    const response = await control.fetch(`/tasks?wait_ms=${ms}`, {
      method: 'POST',
      body: JSON.stringify({ tasks: [noop('refused')] }),
    })
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: `invalid wait_ms "${ms}": expected milliseconds from 0 to 60000` },
    ])
    expect((await control.fetch('/tasks/refused')).status).toBe(404)
  })

  test('is answered when the service stops', async () => {
    await using service = await startControl({ flags: ['--shutdown-timeout', '0s'] })
    const tasks = [{ id: 'sleeps', type: 'sleep', params: { duration_ms: 600_000 } }]
    const waiting = service.fetch('/tasks?wait_ms=60000', { method: 'POST', body: JSON.stringify({ tasks }) })
    await until(
      () => service.list(),
      ([task]) => task?.status === 'running',
    )
    const stopped = service.stop()
    expect(await (await waiting).json()).toMatchObject({ all_terminal: false })
    expect(await stopped).toBe(0)
  })
})

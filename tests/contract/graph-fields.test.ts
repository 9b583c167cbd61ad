/** The fields of a graph beside its tasks: what they may be, and that a restart finds them again. */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ActionResponse } from '../../shared/contract/adapter-v1.ts'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'

const noop = (id: string) => ({ id, type: 'noop' })
const options = { name: 'nightly build', labels: { team: 'core', 'app.io/env': '' } }

/** The options that the state file has for each graph, in order. */
const storedOptions = (dataDir: string) =>
  Object.values(JSON.parse(readFileSync(join(dataDir, 'state.json'), 'utf8')) as Record<string, { graph?: object }>)
    .map(({ graph }) => graph)
    .filter((graph) => graph !== undefined)

test('a name and labels are kept, with the first task of the graph, across a crash and a restart', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  {
    await using control = await startControl({ dataDir, flags: ['--persist-interval', '1h'] })
    expect((await control.post({ tasks: [noop('a'), noop('b')], ...options })).status).toBe(202)
    await using mcp = await connectClient(control.url)
    const { data } = await mcp.call('submit_graph', { tasks: [noop('c')], name: 'by an agent', labels: null })
    expect(data.accepted).toBe(1)
    const action = { kind: 'task_graph.submit', input: { task_graph: { tasks: [noop('d')], labels: { a: 'b' } } } }
    const acted = await control.fetch('/adapters/actions', { method: 'POST', body: JSON.stringify({ action }) })
    expect(((await acted.json()) as ActionResponse).task_graph.labels).toEqual({ a: 'b' })
    await control.submit([noop('plain')])
    await control.stop('SIGKILL')
  }
  for (let starts = 0; starts < 2; starts++) {
    await using control = await startControl({ dataDir })
    await control.allEnded()
    expect(await control.stop()).toBe(0)
    expect(storedOptions(dataDir)).toEqual([options, { name: 'by an agent' }, { labels: { a: 'b' } }])
  }
})

test('the first task of a graph may be gone', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  for (let starts = 0; starts < 3; starts++) {
    await using control = await startControl({ dataDir })
    if (starts === 0) expect((await control.post({ tasks: ['a', 'b', 'c'].map(noop), ...options })).status).toBe(202)
    await control.allEnded()
    if (starts > 0) expect((await control.fetch(`/tasks/${'ab'[starts - 1]}`, { method: 'DELETE' })).status).toBe(204)
    if (starts === 1) await control.stop('SIGKILL')
    else await control.stop()
  }
  expect(storedOptions(dataDir)).toEqual([options])
})

describe('wrong fields are refused by their names', () => {
  test('in a graph, an action and a call of a tool', async () => {
    await using control = await startControl()
    const refusal = async (graph: object, path = '/tasks') => {
      const response = await control.fetch(path, { method: 'POST', body: JSON.stringify(graph) })
      expect(response.status).toBe(400)
      return ((await response.json()) as ErrorResponse).error
    }
    const tasks = [noop('a')]
    expect(await refusal({ tasks, name: 7 })).toBe('invalid JSON: name: expected string')
    expect(await refusal({ tasks, labels: ['a'] })).toBe('invalid JSON: labels: expected object of strings')
    expect(await refusal({ tasks, tags: {} })).toBe('unknown field "tags" in graph (did you mean "labels"?)')
    expect(await refusal({ tasks, mutex: 'a' })).toBe('unknown field "mutex" in graph (did you mean "concurrency"?)')
    expect(await refusal({ tasks, concurrency: { group: 'a', limits: 2 } })).toBe(
      'unknown field "concurrency.limits" in graph (did you mean "concurrency.limit"?)',
    )
    const action = { kind: 'task_graph.submit', input: { task_graph: { tasks, labels: { a: 1 } } } }
    expect(await refusal({ action }, '/adapters/actions')).toBe(
      'invalid JSON: action.input.task_graph.labels: expected object of strings',
    )
    await using mcp = await connectClient(control.url)
    const { isError, text } = await mcp.call('submit_graph', { tasks, labels: { 'a b': 'c' } })
    expect(isError).toBe(true)
    expect(text).toStartWith('invalid input: labels: expected object of at most 64 strings (names of 1 to 63 ')
    expect(await control.list()).toEqual([])
  })

  test('null means absent', async () => {
    await using control = await startControl()
    const response = await control.post({ tasks: [noop('a')], name: null, labels: null })
    expect({ status: response.status, answer: (await response.json()) as SubmitResponse }).toMatchObject({
      status: 202,
      answer: { accepted: 1 },
    })
  })
})

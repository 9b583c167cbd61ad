/**
 * Goal: values of other tasks and parameters reach a task in bounded memory and time. Method: a chain of 10,000 tasks in
 * memory; files of results that are read on demand.
 */

import { expect, test } from 'bun:test'
import { ResultFile } from '../../../control/rules/result-file.ts'
import { GraphRoom } from '../../../control/scheduler/graph-room.ts'
import { InputResolver } from '../../../control/scheduler/input-resolver.ts'
import type { Task } from '../../../control/task/graph.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryKeeper } from '../../support/memory-keeper.ts'
import { World } from '../../support/scheduler-world.ts'
import { until } from '../../support/until.ts'

const LENGTH = 10_000

test('a chain of references hands its value on, and lets the event loop turn meanwhile', async () => {
  const world = new World()
  const chain = Array.from({ length: LENGTH }, (_, i) => ({
    ...{ id: `t${i}`, type: 'test', depends_on: i === 0 ? [] : [`t${i - 1}`] },
    input: { outcomes: ['ok'], given: i === 0 ? 'the value' : { $from: `t${i - 1}`, path: '/id' } },
  }))
  let turns = 0
  const count = () => {
    turns++
    if (!world.isOver) setImmediate(count)
  }
  const graph = world.submit(chain, (task) => {
    task.setRare('hasPlaceholders', task.position > 0 || undefined)
  })
  setImmediate(count)
  await world.over()
  expect(graph.tasks.every(({ status }) => status === 'success')).toBe(true)
  expect(graph.tasks.at(-1)!.rare.resolved_input).toEqual({ outcomes: ['ok'], given: `t${LENGTH - 2}` })
  expect(turns).toBeGreaterThan(5)
})

const SOURCES = Array.from({ length: 20 }, (_, i) => `s${i}`)
const sources = SOURCES.map((id) => ({ id, type: 'test', input: { outcomes: ['ok'] } }))

/** A task that references two values in the result of each source. */
const reader = {
  ...{ id: 'reader', type: 'test', depends_on: SOURCES },
  input: {
    outcomes: ['ok'],
    first: SOURCES.map(($from) => ({ $from, path: '/result/value' })),
    second: SOURCES.map(($from) => ({ $from, path: '/result/list/0' })),
  },
}

const readerHasPlaceholders = (task: Task) => {
  task.setRare('hasPlaceholders', task.id === 'reader' || undefined)
}

test('results in files are read once each, one after the other', async () => {
  const read: string[] = []
  let reading = 0
  let most = 0
  const keeper = memoryKeeper({
    keep: async ({ id }) => new ResultFile(id),
    async read({ name }) {
      most = Math.max(most, ++reading)
      await nextTurn()
      reading--
      read.push(name)
      return { json: JSON.stringify({ value: `of ${name}`, list: [name] }) }
    },
  })
  const world = new World({ keeper })
  world.submit([...sources, reader], readerHasPlaceholders)
  await world.over()
  expect(world.task('reader').rare.resolved_input).toEqual({
    ...{ outcomes: ['ok'], first: SOURCES.map((id) => `of ${id}`), second: SOURCES },
  })
  expect([read, most]).toEqual([SOURCES, 1])
})

test('no further file is read after a cancellation', async () => {
  const gate = Promise.withResolvers<void>()
  let reads = 0
  const keeper = memoryKeeper({
    keep: async ({ id }) => new ResultFile(id),
    async read() {
      reads++
      await gate.promise
      return { json: '{"value":1,"list":[1]}' }
    },
  })
  const world = new World({ keeper })
  world.submit([...sources, reader], readerHasPlaceholders)
  await until(() => reads, 1)
  world.scheduler.cancel(world.task('reader'))
  gate.resolve()
  await world.over()
  expect([reads, world.task('reader').status]).toEqual([1, 'cancelled'])
})

test('values of parameters and references count together, before an input is made of them', async () => {
  const world = new World()
  const params = { p: 'x'.repeat(1_000_000) }
  const values = (count: number) => Array.from({ length: count }, () => ({ $param: 'p' }))
  const inputs: Record<string, unknown> = {
    many: { outcomes: ['ok'], values: values(1_500) },
    fits: { outcomes: ['ok'], values: values(67) },
    both: { outcomes: ['ok'], values: [{ $from: 'a', path: '/input/text' }, ...values(67)] },
  }
  const tasks = Object.entries(inputs).map(([id, input]) => ({ id, type: 'test', depends_on: ['a'], input }))
  world.submit(
    [{ id: 'a', type: 'test', input: { outcomes: ['ok'], text: 'x'.repeat(200_000) } }, ...tasks],
    (task) => {
      task.setRare('hasPlaceholders', task.id !== 'a' || undefined)
    },
    { params },
  )
  await world.over()
  const text = 'the values of references and parameters have more than 67108864 bytes together'
  expect(world.task('many').rare.error).toBe(`input.values[67]: ${text}`)
  expect(world.task('fits').status).toBe('success')
  expect(world.task('both').rare.error).toBe(`input.values[0]: ${text}`)
})

test('a large input counts without a gap from its writing on', async () => {
  const large = 'x'.repeat(70 * 1024)
  const store = new TaskStore()
  const reader = (id: string) => ({
    id,
    type: 'test',
    depends_on: ['source'],
    input: { $from: 'source', path: '/result' },
  })
  const { tasks } = acceptGraph(store, [{ id: 'source', type: 'test' }, reader('first'), reader('second')])
  const [source, first, second] = tasks as [Task, Task, Task]
  Object.assign(source, { status: 'success', result: large })
  const { signal } = new AbortController()
  let other: unknown
  const { results } = memoryKeeper({
    keepInput: () => {
      const written = nextTurn().then(() => new ResultFile(`1-1-1-00000000-${large.length}.json`))
      void written.then(() => {
        other = resolver.resolve(second, signal)
      })
      return written
    },
  })
  const resolver = new InputResolver(store, results, new GraphRoom(100 * 1024), 100 * 1024)
  expect(await resolver.resolve(first, signal)).toBe(large)
  await expect(other as Promise<unknown>).rejects.toThrow('--max-graph-result-bytes')
})

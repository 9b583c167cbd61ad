/**
 * Goal: a past that cannot be read ends a stream of events, and nothing else; a stream has all that happens after its opening.
 * Method: the real store and keeper, with a history that fails as a closed database does, and a disk that takes its time.
 */
import { expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import type { KeptEvents } from '../../../control/log/keeper.ts'
import { EventStreams } from '../../../control/operations/event-streams.ts'
import type { TaskStore } from '../../../control/task/task-store.ts'
import type { ServiceEvent } from '../../../shared/contract/events.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { openEmbedded } from '../../support/embedded-keeper.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { operationParts } from '../../support/operation-parts.ts'
import { tempDir } from '../../support/temp.ts'

const FAULT = 'the connections are closed'

const groundOf = (store: TaskStore, keeper: KeptEvents, log = silentLog()) =>
  operationParts({
    ...{ store, keeper, log, executors: new ExecutorRegistry() },
    scheduler: { executing: [], slotUse: { taken: 0, count: 1, hold: undefined, paused: new Map() } },
  })

test('a stream whose past cannot be read ends', async () => {
  using dir = tempDir()
  const { store, keeper } = await openEmbedded(dir.path)
  acceptGraph(store, [{ id: 'a', type: 'noop' }])
  const { events, history, numbers } = keeper
  const { log, lines } = memoryLog()
  const broken = {
    ...{ last: history.last, oldest: history.oldest },
    // biome-ignore lint/correctness/useYield: it fails before
    async *read() {
      throw new Error(FAULT)
    },
  }
  const streams = new EventStreams(groundOf(store, { events, numbers, history: broken }, log), 1)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const sink = { begin: () => {}, send: () => {}, isFull: false, drained: async () => true, end }
  streams.open({ subject: {}, after: 0, untilEnded: false }, sink)
  await ended
  expect(streams.openCount).toBe(0)
  expect(lines()).toMatchObject([
    { level: 'error', msg: 'an event stream broke', cause: expect.stringContaining(FAULT) },
  ])
  await keeper.stop()
})

test('a stream of a graph that is removed while the stream begins tells that, and ends', async () => {
  using dir = tempDir()
  const { store, keeper } = await openEmbedded(dir.path)
  const graph = acceptGraph(store, [{ id: 'a', type: 'noop' }])
  const [task] = graph.tasks
  store.apply({ kind: 'ended', task: task!, at: Date.now(), ending: { status: 'skipped', error: 'not needed' } })
  store.apply({ kind: 'graph-ended', graph, at: Date.now() })
  const { events } = keeper
  const settle = events.settle.bind(events)
  events.settle = () => {
    if (store.graph(graph.id) !== undefined) {
      keeper.deleteGraph(graph)
      store.apply({ kind: 'graph-retired', graph, at: Date.now() })
    }
    return settle()
  }
  const streams = new EventStreams(groundOf(store, keeper), 1)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const sent: ServiceEvent[] = []
  const send = (some: readonly ServiceEvent[]) => void sent.push(...some)
  const sink = { begin: () => {}, send, isFull: false, drained: async () => true, end }
  streams.open({ subject: { graph }, after: undefined, untilEnded: false }, sink)
  await ended
  expect(sent.map(({ event }) => event)).toEqual(['graph_removed'])
  await keeper.stop()
})

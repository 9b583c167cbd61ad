/**
 * Goal: a past that cannot be read ends a stream of events, and nothing else.
 * Method: the real store and keeper, with a history that fails as a closed database does.
 */
import { expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { EventStreams } from '../../../control/operations/event-streams.ts'
import { WaitingEvents } from '../../../control/operations/waiting-events.ts'
import { openEmbedded } from '../../support/embedded-keeper.ts'
import { acceptGraph } from '../../support/graph.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { tempDir } from '../../support/temp.ts'

const FAULT = 'the connections are closed'

test('a stream whose past cannot be read ends', async () => {
  using dir = tempDir()
  const { store, keeper } = await openEmbedded(dir.path)
  acceptGraph(store, [{ id: 'a', type: 'noop' }])
  const { events, history, numbers } = keeper
  const scheduler = { executing: [], slotUse: { taken: 0, count: 1, hold: undefined } }
  const { log, lines } = memoryLog()
  const streams = new EventStreams({
    ...{ store, events, numbers, log, maxStreams: 1, stopping: new AbortController().signal },
    history: {
      ...{ last: history.last, oldest: history.oldest },
      // biome-ignore lint/correctness/useYield: it fails before
      async *read() {
        throw new Error(FAULT)
      },
    },
    waiting: new WaitingEvents({ store, scheduler, executors: new ExecutorRegistry(), keeper: {} }),
  })
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

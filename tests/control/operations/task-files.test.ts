/** Goal: the limit on files that are read holds, and whoever leaves makes room. Method: an executor with an endless file. */
import { expect, test } from 'bun:test'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { MAX_FILE_STREAMS, openFile } from '../../../control/operations/task-files.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { acceptGraph } from '../../support/graph.ts'
import { operationParts } from '../../support/operation-parts.ts'

test('more files than may be read at the same time get 503, until a reader leaves, its file ends or breaks', async () => {
  const store = new TaskStore()
  acceptGraph(store, [{ id: 'a', type: 'test' }])
  const ends: { close(): void; error(cause: unknown): void }[] = []
  const executors = new ExecutorRegistry([
    {
      ...{ type: 'test', execute: () => {} },
      openFile: async ({ id }) => {
        const stream = new ReadableStream<Uint8Array>({ start: (controller) => void ends.push(controller) })
        return { attempt: 1, status: 200, headers: new Headers({ id }), stream }
      },
    },
  ])
  const request = { path: 'f', as: 'bytes', attempt: undefined, method: 'GET', headers: {} } as const
  const left = new AbortController()
  const parts = operationParts({ store, executors })
  const open = (signal = left.signal) => openFile(parts, { id: 'a' }, request, { signal, traceId: '' })
  const one = new AbortController()
  await open(one.signal)
  const files = await Promise.all(Array.from({ length: MAX_FILE_STREAMS - 1 }, () => open()))
  const isFull = async () => ((await open().catch((error) => error)) as { status: number }).status === 503
  expect(await isFull()).toBe(true)
  one.abort()
  files.push(await open())
  expect(await isFull()).toBe(true)
  await files[0]!.stream!.cancel()
  files.push(await open())
  ends[2]!.close()
  expect((await files[1]!.stream!.getReader().read()).done).toBe(true)
  files.push(await open())
  ends[3]!.error(new Error('cut'))
  expect(await files[2]!.stream!.getReader().read().catch(String)).toContain('cut')
  files.push(await open())
  expect(await isFull()).toBe(true)
  left.abort()
  await open(new AbortController().signal).then(({ stream }) => stream!.cancel())
})

/** Goal: a runtime service that falls silent holds no reader of files. Method: a server that stops where it is told. */
import { expect, test } from 'bun:test'
import { RuntimePool } from '../../../../control/executors/runtime/pool.ts'
import { openTaskFile } from '../../../../control/executors/runtime/task-files.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { memoryKeeper } from '../../../support/memory-keeper.ts'

test.each([
  ['before its answer', 'head'],
  ['in the middle of a file', 'body'],
])('one that is silent %s for FILE_STALL_MS is broken off', async (_, stop) => {
  await using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => {
      if (stop === 'head') return new Promise<Response>(() => {})
      let isFirst = true
      return new Response(
        new ReadableStream({
          pull: (controller) => {
            if (!isFirst) return new Promise<void>(() => {})
            isFirst = false
            return controller.enqueue(new Uint8Array(10))
          },
        }),
      )
    },
  })
  const configured = [{ name: 'one', url: server.url.href, labels: {}, token: undefined }]
  const pool = new RuntimePool({ configured, token: undefined, keeper: memoryKeeper(), log: silentLog() })
  const handle = { id: 'x', isTaken: true, runtime: 'one' }
  const task = { id: 'a', graph: { id: 'g' }, attempt: 1, rare: { handle } }
  const request = { path: 'f', as: 'bytes', attempt: undefined, method: 'GET', headers: {} } as const
  const call = { traceId: 't', signal: new AbortController().signal }
  const read = async () => {
    const { stream } = await openTaskFile(pool, task, request, call, 50)
    return await new Response(stream).bytes()
  }
  const error = await read().catch((error) => error)
  expect(String(error)).toContain('no byte for 50 ms')
  if (stop === 'head') expect(error.status).toBe(503)
})

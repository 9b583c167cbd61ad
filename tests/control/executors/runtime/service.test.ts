/** Goal: submissions carry the time until which they may be accepted. Method: servers that stand for runtime services. */
import { expect, test } from 'bun:test'
import { RuntimeService, SUBMISSION_LEASE_MS } from '../../../../control/executors/runtime/service.ts'
import { CallFailed } from '../../../../shared/http/client.ts'
import { memoryKeeper } from '../../../support/memory-keeper.ts'

/** `clock` is what GET /healthz tells; `answer` is that to the n-th submission. */
function served(clock: () => string | undefined, answer: (nth: number) => Response) {
  const seen: (string | null)[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url, headers }) => {
      if (url.endsWith('/healthz')) return Response.json({ status: 'ok', version: '1', clock: clock() })
      seen.push(headers.get('x-service-not-after'))
      return answer(seen.length)
    },
  })
  const service = new RuntimeService({ url: server.url.href, token: undefined, keeper: memoryKeeper() })
  let sent = 0
  const submit = (signal = new AbortController().signal) =>
    service.submit({}, 'trace', { begin: () => undefined, controlPort: undefined, signal, onSend: () => sent++ })
  return { seen, submit, sent: () => sent, [Symbol.asyncDispose]: () => server.stop(true) }
}

const accepted = () => Response.json({ task_id: 'a' })
const late = () =>
  Response.json({ error: { code: 'conflict', message: 'too late', details: { refused_as: 'late' } } }, { status: 409 })

test('a submission names the reading and SUBMISSION_LEASE_MS more than has passed since', async () => {
  await using world = served(() => 'reading', accepted)
  await world.submit()
  await world.submit()
  const ms = world.seen.map((text) => Number(/^reading\+(\d+)$/.exec(text!)![1]))
  expect(ms[0]).toBeGreaterThanOrEqual(SUBMISSION_LEASE_MS)
  expect(ms[1]).toBeGreaterThanOrEqual(ms[0]!)
})

test('a service of an earlier version gets no such header', async () => {
  await using world = served(() => undefined, accepted)
  await world.submit()
  expect(world.seen).toEqual([null])
})

test('one that is late is sent again with a new reading', async () => {
  let readings = 0
  await using world = served(
    () => `reading${++readings}`,
    (nth) => (nth < 3 ? late() : accepted()),
  )
  await world.submit()
  expect(world.seen.map((text) => text!.split('+')[0])).toEqual(['reading1', 'reading2', 'reading3'])
  expect(world.sent()).toBe(3)
})

test('one that is late again and again did not get there, and may be tried later', async () => {
  await using world = served(() => 'reading', late)
  const error = await world.submit().catch((fault) => fault)
  expect(error).toBeInstanceOf(CallFailed)
  expect(error).toMatchObject({ statusCode: 503, message: expect.stringContaining('too late') })
})

test('nothing is sent for an attempt that was stopped', async () => {
  await using world = served(() => 'reading', accepted)
  await expect(world.submit(AbortSignal.abort())).rejects.toThrow()
  expect([world.seen, world.sent()]).toEqual([[], 0])
})

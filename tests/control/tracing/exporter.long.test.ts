/** Goal: spans are delivered, or dropped and counted, and nothing else waits for them. Method: small collectors. */
import { expect, test } from 'bun:test'
import { MAX_WAITING_CHARACTERS, MAX_WAITING_SPANS, SpanExporter } from '../../../control/tracing/exporter.ts'
import type { Span } from '../../../control/tracing/spans.ts'
import { startCollector } from '../../support/collector.ts'
import { freePort } from '../../support/free-port.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { until } from '../../support/until.ts'

const span = (name: string): Span => ({
  ...{ traceId: '1'.repeat(32), spanId: '2'.repeat(16), flags: 1, name, kind: 1 },
  ...{ startTimeUnixNano: '1000000', endTimeUnixNano: '2000000', attributes: [], status: {} },
})

function exporterTo(url: string, more: { timeoutMs?: number } = {}) {
  const log = memoryLog()
  const options = { headers: { 'x-key': 'k' }, serviceName: 'mill', timeoutMs: 10_000, instanceId: 'one', ...more }
  return { log, exporter: new SpanExporter({ ...options, url: `${url}/v1/traces`, log: log.log }) }
}

test('spans are sent in batches, with what they come from', async () => {
  await using collector = startCollector()
  const { exporter } = exporterTo(collector.url)
  for (let i = 0; i < 600; i++) exporter.add(() => span(`s${i}`))
  await collector.has(600)
  expect(collector.spans().map(({ name }) => name)).toEqual(Array.from({ length: 600 }, (_, i) => `s${i}`))
  expect(collector.requests.map(({ spans }) => spans.length)).toEqual([256, 256, 88])
  const [{ path, headers, resource }] = collector.requests as [(typeof collector.requests)[0]]
  expect(path).toBe('/v1/traces')
  expect(headers.get('x-key')).toBe('k')
  expect(headers.get('content-type')).toBe('application/json')
  expect(resource).toMatchObject({ 'service.name': 'mill', 'service.instance.id': 'one' })
  await until(() => exporter.counts.sent, 600)
  expect(exporter.waitingCount).toBe(0)
  await exporter.stop()
})

test('spans wait for a collector that is away; beyond the limit they are dropped unmade', async () => {
  const port = await freePort()
  const { exporter, log } = exporterTo(`http://127.0.0.1:${port}`)
  let made = 0
  const add = (count: number) => {
    for (let i = 0; i < count; i++) {
      exporter.add(() => {
        made++
        return span('s')
      })
    }
  }
  add(300)
  await until(() => log.lines().length, 1)
  expect(log.lines()[0]).toMatchObject({
    level: 'warn',
    msg: 'traces cannot be delivered',
    cause: expect.stringContaining('refused'),
  })
  add(MAX_WAITING_SPANS)
  expect(made).toBe(MAX_WAITING_SPANS)
  expect(exporter.counts).toEqual({ sent: 0, dropped: 300 })
  await using collector = startCollector(undefined, port)
  await collector.has(MAX_WAITING_SPANS)
  await until(() => exporter.waitingCount, 0)
  expect(exporter.counts).toEqual({ sent: MAX_WAITING_SPANS, dropped: 300 })
  expect(log.lines().map(({ msg }) => msg)).toEqual(['traces cannot be delivered', 'traces are delivered again'])
  await exporter.stop()
})

test('long spans are limited by their length, waiting and in a batch', async () => {
  const port = await freePort()
  const { exporter, log } = exporterTo(`http://127.0.0.1:${port}`)
  const long = { ...span('s'), attributes: [{ key: 'k', value: { stringValue: 'x'.repeat(64 * 1024) } }] }
  for (let i = 0; i < 300; i++) exporter.add(() => long)
  await until(() => log.lines().length, 1)
  const fit = Math.ceil(MAX_WAITING_CHARACTERS / (64 * 1024 + 2))
  expect(exporter.waitingCount).toBe(fit)
  expect(exporter.counts.dropped).toBe(300 - fit)
  await using collector = startCollector(undefined, port)
  await collector.has(fit)
  expect(Math.max(...collector.requests.map(({ spans }) => spans.length))).toBe(3)
  await until(() => exporter.waitingCount, 0)
  exporter.add(() => long)
  expect(exporter.waitingCount).toBe(1)
  await exporter.stop()
})

test('a collector that names a time to wait is obeyed', async () => {
  const times: number[] = []
  await using collector = startCollector((count) => {
    times.push(performance.now())
    return count === 1 ? new Response(null, { status: 429, headers: { 'retry-after': '2' } }) : Response.json({})
  })
  const { exporter } = exporterTo(collector.url)
  exporter.add(() => span('s'))
  await collector.has(2)
  expect(times[1]! - times[0]!).toBeGreaterThan(1_990)
  await exporter.stop()
})

test.each([429, 502, 503, 504])('a batch that is answered %d is sent again', async (status) => {
  await using collector = startCollector((count) => (count === 1 ? new Response(null, { status }) : Response.json({})))
  const { exporter } = exporterTo(collector.url)
  exporter.add(() => span('s'))
  await until(() => exporter.counts.sent, 1)
  expect(collector.requests.length).toBe(2)
  await exporter.stop()
})

test.each([301, 400, 401, 404, 500])('a batch that is answered %d is dropped', async (status) => {
  await using collector = startCollector((count) => (count === 1 ? new Response(null, { status }) : Response.json({})))
  const { exporter, log } = exporterTo(collector.url)
  exporter.add(() => span('s'))
  await until(() => exporter.counts.dropped, 1)
  expect(log.lines()).toMatchObject([
    { level: 'warn', msg: 'traces were refused', spans: 1, cause: `the collector answered ${status}` },
  ])
  exporter.add(() => span('t'))
  await until(() => exporter.counts.sent, 1)
  await exporter.stop()
})

test.each([
  ['{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too old"}}', 2],
  ['{"partialSuccess":{"rejectedSpans":99}}', 3],
  ['{"partialSuccess":{}}', 0],
  ['not JSON', 0],
  ['', 0],
])('what the collector rejects of a batch is counted: %s', async (answer, dropped) => {
  await using collector = startCollector(() => new Response(answer))
  const { exporter } = exporterTo(collector.url)
  for (const name of ['a', 'b', 'c']) exporter.add(() => span(name))
  await until(() => exporter.waitingCount, 0)
  expect(exporter.counts).toEqual({ sent: 3 - dropped, dropped })
  await exporter.stop()
})

test('the end sends what waits', async () => {
  await using collector = startCollector()
  const { exporter } = exporterTo(collector.url)
  for (let i = 0; i < 300; i++) exporter.add(() => span('s'))
  await exporter.stop()
  expect(collector.spans().length).toBe(300)
  exporter.add(() => span('late'))
  expect(exporter.counts).toEqual({ sent: 300, dropped: 1 })
})

test('the end does not wait long for a collector that says nothing', async () => {
  await using collector = startCollector(() => new Promise<Response>(() => {}))
  const { exporter } = exporterTo(collector.url, { timeoutMs: 60_000 })
  exporter.add(() => span('s'))
  const start = performance.now()
  await exporter.stop()
  expect(performance.now() - start).toBeLessThan(30_000)
  expect(exporter.counts).toEqual({ sent: 0, dropped: 1 })
})

test('a collector that says nothing counts as away after the time limit', async () => {
  await using collector = startCollector((count) => (count === 1 ? new Promise<Response>(() => {}) : Response.json({})))
  const { exporter, log } = exporterTo(collector.url, { timeoutMs: 20 })
  exporter.add(() => span('s'))
  await until(
    () => log.lines().length,
    (count) => count > 0,
  )
  expect(log.lines()[0]).toMatchObject({ msg: 'traces cannot be delivered', cause: 'no answer within 20 ms' })
  await exporter.stop()
})

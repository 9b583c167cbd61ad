/** Goal: what happens to a graph is one trace, also over crashes, and costs nothing without a collector. Method: the built service. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CollectedSpan, startCollector } from '../support/collector.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const ERROR = 2

const traced = (url: string, more: Readonly<Record<string, string>> = {}) => ({
  env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, SERVICE_SHELL_POLICY: 'open', ...more },
})

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })

/** Spans by task and attempt; that of the graph is `graph`. */
const named = (spans: readonly CollectedSpan[]): Readonly<Record<string, CollectedSpan>> =>
  Object.fromEntries(
    spans.map((span) => {
      const { 'taskmill.task.id': id, 'taskmill.task.attempt': attempt } = span.attributes
      return [id === undefined ? 'graph' : `${id} ${attempt}`, span]
    }),
  )

const metrics = async (control: Control) =>
  (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()

test('a graph, its attempts, children and approvals are one trace', async () => {
  await using collector = startCollector()
  await using control = await startControl(
    traced(collector.url, { OTEL_SERVICE_NAME: 'mill', OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b' }),
  )
  const tasks = [
    noop('a'),
    { id: 'b', type: 'shell', params: { script: 'echo no >&2; exit 3' }, retry: 1, backoff: { initial_ms: 1 } },
    noop('skipped', { depends_on: ['b'] }),
    noop('map', { for_each: ['x', 'y'], depends_on: ['a'] }),
    { id: 'sure', type: 'approval', params: { message: 'go?' } },
  ]
  const answer = await control.post({ scope: 'graph', name: 'nightly', labels: { team: 'web' }, tasks })
  const { graph_id } = (await answer.json()) as { graph_id: string }
  const approving = () =>
    control.fetch(`/graphs/${graph_id}/tasks/sure/approve`, { method: 'POST', body: '{"who":"ada"}' })
  await until(async () => (await approving()).status, 200)
  const spans = await collector.has(8)
  const by = named(spans)
  expect(Object.keys(by).toSorted()).toEqual(['a 1', 'b 1', 'b 2', 'graph', 'map 1', 'map[0] 1', 'map[1] 1', 'sure 1'])
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([graph_id.replaceAll('-', '')]))
  expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(8)
  const { graph } = by
  expect(graph).toMatchObject({
    ...{ name: 'graph nightly', kind: 1, status: { code: ERROR } },
    attributes: {
      ...{ 'taskmill.graph.id': graph_id, 'taskmill.graph.name': 'nightly', 'taskmill.graph.state': 'failed' },
      ...{ 'taskmill.graph.tasks.skipped': 1, 'taskmill.graph.tasks.failed': 1, 'taskmill.graph.label.team': 'web' },
      'taskmill.trace_id': answer.headers.get('x-trace-id')!,
    },
  })
  expect(graph!.parentSpanId).toBeUndefined()
  for (const name of ['a 1', 'b 1', 'b 2', 'map 1', 'sure 1']) expect(by[name]!.parentSpanId).toBe(graph!.spanId)
  for (const name of ['map[0] 1', 'map[1] 1']) expect(by[name]!.parentSpanId).toBe(by['map 1']!.spanId)
  for (const { start, end } of spans) {
    expect(start).toBeLessThanOrEqual(end)
    expect(start).toBeGreaterThanOrEqual(graph!.start)
    expect(end).toBeLessThanOrEqual(graph!.end)
  }
  expect(by['a 1']).toMatchObject({ name: 'os.noop', status: {}, attributes: { 'taskmill.task.status': 'success' } })
  for (const name of ['b 1', 'b 2']) {
    expect(by[name]).toMatchObject({
      ...{ name: 'os.shell', status: { code: ERROR, message: 'command failed: exit status 3' } },
      attributes: { 'error.type': 'exit_nonzero', 'taskmill.task.status': 'failed' },
    })
  }
  const [{ path, headers, resource }] = collector.requests as [(typeof collector.requests)[0]]
  expect([path, headers.get('x-key'), resource['service.name']]).toEqual(['/v1/traces', 'a b', 'mill'])
  await until(
    () => metrics(control),
    (text) => text.includes('service_control_spans_total{outcome="sent"} 8'),
  )
})

test('attempts that ask other services are of kind CLIENT', async () => {
  await using collector = startCollector()
  await using control = await startControl(traced(collector.url))
  const { url } = control
  await control.submit([
    { id: 'http', type: 'http', params: { url: `${url}/health` } },
    { id: 'failed', type: 'http', params: { url: `${url}/nowhere` } },
    { id: 'call', type: 'mcp', tool_name: 'echo', params: { a: 1 } },
    { id: 'poll', type: 'mcp', tool_name: 'poll', params: { handle_id: 'none' } },
    noop('noop'),
  ])
  const kinds = Object.entries(named(await collector.has(6))).map(([name, { kind }]) => `${name}: ${kind}`)
  expect(kinds.toSorted()).toEqual(['call 1: 3', 'failed 1: 3', 'graph: 1', 'http 1: 3', 'noop 1: 1', 'poll 1: 1'])
})

describe('a caller', () => {
  test('that sends a traceparent is the parent, and finds its trace in the logs', async () => {
    await using collector = startCollector()
    await using control = await startControl(traced(collector.url))
    const traceparent = `00-${TRACE}-${SPAN}-01`
    const answer = await control.post({ tasks: [noop('a')] }, { traceparent })
    expect(answer.headers.get('x-trace-id')).toBe(traceparent)
    const by = named(await collector.has(2))
    expect(by.graph).toMatchObject({ traceId: TRACE, parentSpanId: SPAN })
    expect(by['a 1']).toMatchObject({ traceId: TRACE, parentSpanId: by.graph!.spanId })
    const line = await until(() => control.log.find(({ msg }) => msg === 'graph accepted'))
    expect(line).toMatchObject({ trace_id: traceparent })
  })

  test('that does not record its trace gets no spans', async () => {
    await using collector = startCollector()
    await using control = await startControl(traced(collector.url))
    await control.post({ tasks: [noop('a')] }, { traceparent: `00-${TRACE}-${SPAN}-00` })
    await control.ended('a')
    await control.submit([noop('b')], { 'x-trace-id': 'mine', traceparent: `00-${TRACE}-${SPAN}-00` })
    const spans = await collector.has(2)
    expect(Object.keys(named(spans)).toSorted()).toEqual(['b 1', 'graph'])
    expect(named(spans).graph!.attributes['taskmill.trace_id']).toBe('mine')
    await control.stop()
    expect(collector.spans().length).toBe(2)
  })
})

test('a trace goes on after a crash', async () => {
  await using collector = startCollector()
  using temp = tempDir()
  const options = { ...traced(collector.url), dataDir: join(temp.path, 'data'), cwd: temp.path }
  const tasks = [
    noop('a'),
    { id: 'b', type: 'shell', params: { script: 'while [ ! -e go ]; do sleep 0.01; done' }, depends_on: ['a'] },
  ]
  let before: readonly CollectedSpan[] = []
  {
    await using control = await startControl(options)
    await control.submit(tasks, { traceparent: `00-${TRACE}-${SPAN}-01` })
    await control.reached('b', 'running')
    before = await collector.has(1)
    await control.stop('SIGKILL')
  }
  writeFileSync(join(temp.path, 'go'), '')
  await using control = await startControl(options)
  await control.ended('b')
  const by = named(await collector.has(3))
  expect(before.map(({ name }) => name)).toEqual(['os.noop'])
  expect(by['b 2']).toMatchObject({ traceId: TRACE, parentSpanId: by.graph!.spanId })
  expect(by['a 1']!.parentSpanId).toBe(by.graph!.spanId)
  expect(by.graph).toMatchObject({
    traceId: TRACE,
    parentSpanId: SPAN,
    attributes: { 'taskmill.graph.state': 'success' },
  })
})

test('a stop ends attempts and sends their spans', async () => {
  await using collector = startCollector()
  await using control = await startControl({ ...traced(collector.url), flags: ['--shutdown-timeout', '0s'] })
  await control.submit([{ id: 'a', type: 'sleep', params: { duration_ms: 600_000 } }])
  await control.reached('a', 'running')
  expect(await control.stop()).toBe(0)
  await collector.has(1)
  expect(collector.spans()).toMatchObject([{ name: 'os.sleep', attributes: { 'taskmill.task.status': 'interrupted' } }])
})

test('a cancelled task between two attempts has the span of its attempt once', async () => {
  await using collector = startCollector()
  await using control = await startControl(traced(collector.url))
  await control.submit([
    {
      id: 'a',
      type: 'shell',
      params: { command: 'false' },
      retry: 9,
      backoff: { initial_ms: 600_000, max_ms: 600_000 },
    },
  ])
  await until(
    () => control.get('a'),
    ({ waiting }) => waiting?.reason === 'backoff',
  )
  await control.fetch('/tasks/a/cancel', { method: 'POST' })
  expect(Object.keys(named(await collector.has(2))).toSorted()).toEqual(['a 1', 'graph'])
  await control.stop()
  expect(collector.spans().length).toBe(2)
})

test('a collector that is away costs the tasks nothing', async () => {
  const port = await freePort()
  await using control = await startControl(traced(`http://127.0.0.1:${port}`))
  const ids = Array.from({ length: 12_000 }, (_, i) => `t${i}`)
  await control.submit(ids.map((id) => noop(id)))
  await control.ended(ids.at(-1)!)
  await control.allEnded()
  const text = await until(
    () => metrics(control),
    (text) => /spans_total\{outcome="dropped"\} [1-9]/.test(text),
  )
  expect(text).toContain('service_control_spans_waiting 10000\n')
  await until(() => control.log.some(({ msg }) => msg === 'traces cannot be delivered'))
  expect(control.log.filter(({ msg }) => msg === 'traces cannot be delivered').length).toBe(1)
  expect(await control.stop()).toBe(0)
})

test('without an endpoint nothing of it is there', async () => {
  await using control = await startControl({ env: { OTEL_SERVICE_NAME: 'mill' } })
  await control.run(noop('a'))
  expect(await metrics(control)).not.toContain('service_control_spans')
})

test.each([
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'collector' }, 'invalid otlp-endpoint: expected an http: or https: address'],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
    'traces are sent as http/json, not as grpc',
  ],
])('%j stops the start', async (env, message) => {
  await expect(startControl({ env: env as Record<string, string> })).rejects.toThrow(message)
})

/**
 * Goal: what tasks call belongs to the trace of their graph. Method: the built services, with what they call on loopback: an
 * HTTP server, MCP servers, programs.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startCollector } from '../support/collector.ts'
import { type Control, startControl } from '../support/control.ts'
import { oddServer, startMcpControl } from '../support/mcp.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startMcpHttpServer } from '../support/mcp-http-server.ts'
import { startPair } from '../support/pair.ts'
import { tempDir } from '../support/temp.ts'

const PARENT = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

const STATE = 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE'

type Trace = Readonly<Record<string, unknown>>

const traceIn = (given: { get(name: string): unknown }): Trace =>
  Object.fromEntries(
    ['traceparent', 'tracestate'].flatMap((name) => (given.get(name) ? [[name, given.get(name)]] : [])),
  )

/** A control service with everything that tasks can call. */
async function startCallees(env: Readonly<Record<string, string>> = {}) {
  const temp = tempDir()
  const logFile = join(temp.path, 'mcp.log')
  const headersOf: Record<string, Headers> = {}
  const http = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch({ url, headers }) {
      headersOf[new URL(url).pathname.slice(1)] = headers
      return new Response()
    },
  })
  const web = startMcpHttpServer()
  const servers = {
    odd: oddServer([], { LOG_FILE: logFile }),
    web: { url: web.url },
    fixed: { url: web.url, headers: { traceparent: 'fixed' } },
  }
  const mcp = await startMcpControl(servers, { env: { SERVICE_SHELL_POLICY: 'open', ...env } })
  const called = (server: string) => ({ type: 'mcp', tool_name: `${server}/say`, params: { words: server } })
  return {
    control: mcp.control,
    tasks: {
      http: { type: 'http', params: { url: new URL('http', http.url).href } },
      own: { type: 'http', params: { url: new URL('own', http.url).href, headers: { TraceParent: 'mine' } } },
      shell: { type: 'shell', params: { script: 'echo "$TRACEPARENT|$TRACESTATE"' } },
      shellOwn: { type: 'shell', params: { script: 'echo "$TRACEPARENT|$TRACESTATE"', env: { TRACEPARENT: 'mine' } } },
      ...{ odd: called('odd'), web: called('web'), fixed: called('fixed') },
    },
    /** What each of them got. The tasks have ended. */
    async got(control: Control) {
      const line = async (id: string) => ((await control.get(id)).result as { stdout: string }).stdout
      const messages = readFileSync(logFile, 'utf8')
        .trim()
        .split('\n')
        .map((text) => JSON.parse(text))
      const metaOf = ({ params: { _meta = {} } }: { params: { _meta?: object } }) =>
        traceIn(new Map(Object.entries(_meta)))
      const called = web.received.filter(({ message }) => message.method === 'tools/call')
      const overHttp = (name: string) => {
        const { message, headers } = called.find(({ message }) => message.params?.arguments?.words === name)!
        return [traceIn(headers), metaOf(message as { params: object })]
      }
      return {
        ...{ http: traceIn(headersOf.http!), own: traceIn(headersOf.own!) },
        ...{ shell: await line('shell'), shellOwn: await line('shellOwn') },
        odd: metaOf(messages.find(({ method }) => method === 'tools/call')),
        ...{ web: overHttp('web'), fixed: overHttp('fixed') },
      }
    },
    async [Symbol.asyncDispose]() {
      await mcp[Symbol.asyncDispose]()
      await web[Symbol.asyncDispose]()
      await http.stop(true)
      temp[Symbol.dispose]()
    },
  }
}

/** What the callees got in one run of all tasks. */
async function calledWith(headers: Record<string, string>, env: Record<string, string> = {}) {
  await using callees = await startCallees(env)
  const { control, tasks } = callees
  await control.submit(
    Object.entries(tasks).map(([id, task]) => ({ id, ...task })),
    headers,
  )
  const ended = await control.allEnded()
  expect(ended.map(({ status }) => status)).toEqual(ended.map(() => 'success'))
  return await callees.got(control)
}

describe('without a collector', () => {
  test.each([PARENT, PARENT.replace(/01$/, '00')])('the caller is the parent of what tasks call: %s', async (given) => {
    const trace = { traceparent: given, tracestate: STATE }
    expect(await calledWith(trace)).toEqual({
      ...{ http: trace, own: { traceparent: 'mine' } },
      ...{ shell: `${given}|${STATE}\n`, shellOwn: 'mine|\n' },
      ...{ odd: trace, web: [trace, trace], fixed: [{ traceparent: 'fixed' }, trace] },
    })
  })

  test('nothing is handed on for a caller that does not trace', async () => {
    expect(await calledWith({ 'x-trace-id': 'mine', traceparent: PARENT, tracestate: STATE })).toEqual({
      ...{ http: {}, own: { traceparent: 'mine' }, shell: '|\n', shellOwn: 'mine|\n' },
      ...{ odd: {}, web: [{}, {}], fixed: [{ traceparent: 'fixed' }, {}] },
    })
  })

  test('a runtime task has it in its environment', async () => {
    await using pair = await startPair()
    const script = 'echo "$TRACEPARENT"'
    const task = (id: string, env = {}) => ({ id, type: 'runtime', params: { script, env } })
    await pair.control.submit([task('a'), task('b', { TRACEPARENT: 'mine' })], { traceparent: PARENT })
    const ended = await pair.control.allEnded()
    expect(ended.map(({ result }) => (result as { stdout: string }).stdout)).toEqual([`${PARENT}\n`, 'mine\n'])
  })
})

describe('the tracestate of a caller', () => {
  const script = 'while [ ! -e go ]; do sleep 0.01; done; echo "$TRACEPARENT|$TRACESTATE"'
  const output = async (control: Control, id: string) => ((await control.ended(id)).result as { stdout: string }).stdout
  const open = { env: { SERVICE_SHELL_POLICY: 'open' } }
  const caller = { traceparent: PARENT, tracestate: STATE }
  const expected = `${PARENT}|${STATE}\n`

  test.each(['SIGKILL', 'SIGTERM'] as const)('outlives a restart after %s', async (signal) => {
    using temp = tempDir()
    const flags = ['--shutdown-timeout', '0s']
    const options = { ...open, flags, dataDir: join(temp.path, 'data'), cwd: temp.path }
    const waiting = { id: 'later', type: 'shell', params: { script }, depends_on: ['gate'] }
    for (let run = 1; run <= 2; run++) {
      await using control = await startControl(options)
      if (run === 1) await control.submit([{ id: 'gate', type: 'shell', params: { script } }, waiting], caller)
      await control.reached('gate', 'running')
      await control.stop(signal)
    }
    writeFileSync(join(temp.path, 'go'), '')
    await using control = await startControl(options)
    expect(await output(control, 'later')).toBe(expected)
  })

  test('comes with actions, reruns, and graphs of MCP hosts', async () => {
    await using control = await startControl(open)
    const params = { script: 'echo "$TRACEPARENT|$TRACESTATE"' }
    const action = { action_id: 'act', action: { kind: 'shell', input: params } }
    const init = (body: unknown) => ({ method: 'POST', headers: caller, body: JSON.stringify(body) })
    expect((await control.fetch('/adapters/actions', init(action))).status).toBe(202)
    expect(await output(control, 'act')).toBe(expected)

    const { graph_id } = await control.submit([{ id: 'again', type: 'shell', params }])
    expect(await output(control, 'again')).toBe('|\n')
    expect((await control.fetch(`/graphs/${graph_id}/rerun`, init({ from: ['again'] }))).status).toBe(202)
    expect(await output(control, 'again')).toBe(expected)

    await using host = await connectClient(control.url, 'auto', caller)
    expect((await host.call('submit_graph', { tasks: [{ id: 'host', type: 'shell', params }] })).isError).toBe(false)
    expect(await output(control, 'host')).toBe(expected)
  })

  test.each(['Malformed', `a=${'x'.repeat(511)}`])('is dropped, and the traceparent kept: %s', async (tracestate) => {
    await using control = await startControl(open)
    const params = { script: 'echo "$TRACEPARENT|$TRACESTATE"' }
    await control.submit([{ id: 'a', type: 'shell', params }], { ...caller, tracestate })
    expect(await output(control, 'a')).toBe(`${PARENT}|\n`)
  })
})

describe('with a collector', () => {
  test.each([{}, { traceparent: PARENT }, { traceparent: PARENT, tracestate: STATE }])(
    'the attempt is the parent of what it calls: %j',
    async (headers) => {
      await using collector = startCollector()
      const got = await calledWith(headers, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
      const spans = new Map(
        (await collector.has(8)).map(({ traceId, spanId, attributes }) => [
          attributes['taskmill.task.id'],
          `00-${traceId}-${spanId}-01`,
        ]),
      )
      const { tracestate = '' } = headers as { tracestate?: string }
      const of = (id: string) => ({ traceparent: spans.get(id), ...(tracestate && { tracestate }) })
      expect(new Set(spans.values()).size).toBe(8)
      expect(got).toEqual({
        ...{ http: of('http'), own: { traceparent: 'mine' } },
        ...{ shell: `${spans.get('shell')}|${tracestate}\n`, shellOwn: 'mine|\n' },
        ...{ odd: of('odd'), web: [of('web'), of('web')], fixed: [{ traceparent: 'fixed' }, of('fixed')] },
      })
    },
  )

  test('a caller that does not record its trace stays the parent', async () => {
    await using collector = startCollector()
    const given = PARENT.replace(/01$/, '00')
    const { http } = await calledWith({ traceparent: given }, { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    expect(http).toEqual({ traceparent: given })
  })
})

/** `taskmill mcp`: a stdio bridge to `POST /mcp`; and `taskmill install-mcp`. Against the built client and service. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { TOOLS_BY_SET } from '../../control/mcp-server/tools.ts'
import { builtProgram } from '../../scripts/build.ts'
import { type BridgeUnderTest, startBridge } from '../support/bridge.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { ERAS } from '../support/mcp-client.ts'
import { testEnvironment } from '../support/service.ts'
import { until } from '../support/until.ts'

let control: Control
beforeAll(async () => {
  control = await startControl()
})
afterAll(() => control.dispose())

const initialize = {
  method: 'initialize',
  params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'raw', version: '1' } },
}

async function shakeHands(bridge: BridgeUnderTest): Promise<void> {
  const { result } = await bridge.request({ id: 'hello', ...initialize })
  expect(result.serverInfo.name).toBe('taskmill')
  bridge.send({ method: 'notifications/initialized' })
}

describe.each(ERAS)('era %s', (mode) => {
  test('the official client speaks to it', async () => {
    await using control = await startControl()
    const client = new Client({ name: 'tests', version: '1' }, { versionNegotiation: { mode } })
    const env = testEnvironment({ SERVICE_URL: control.url })
    await client.connect(new StdioClientTransport({ command: await builtProgram('taskmill'), args: ['mcp'], env }))
    expect(client.getNegotiatedProtocolVersion()).toBe(mode === 'legacy' ? '2025-11-25' : '2026-07-28')
    expect((await client.listTools()).tools.length).toBe(TOOLS_BY_SET.graphs.length)
    const { structuredContent } = await client.callTool({
      name: 'run_action',
      arguments: { kind: 'shell', input: { command: 'echo', args: ['hi'] } },
    })
    expect(structuredContent).toMatchObject({ tasks: [{ status: 'success', output: 'hi' }] })

    await control.submit([{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }])
    const reports: unknown[] = []
    const giveUp = new AbortController()
    const waiting = client.callTool(
      { name: 'wait', arguments: { task_ids: ['long'], timeout_ms: 50_000 } },
      { signal: giveUp.signal, onprogress: (report) => reports.push(report) },
    )
    await until(
      () => reports.length,
      (count) => count > 0,
    )
    giveUp.abort('enough')
    await expect(waiting).rejects.toThrow()
    expect((await client.callTool({ name: 'get_task', arguments: { task_id: 'long' } })).isError).toBeUndefined()
    await client.close()
  }, 30_000)
})

test('requests are under way side by side, and answered in their own time', async () => {
  await using control = await startControl()
  await using bridge = await startBridge(control.url)
  await shakeHands(bridge)
  await control.submit([{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }])
  bridge.send({ id: 1, method: 'tools/call', params: { name: 'wait', arguments: { task_ids: ['long'] } } })
  const { result } = await bridge.call('two', 'cancel', { task_ids: ['long'] })
  expect(result.structuredContent.tasks).toEqual([{ id: 'long', status: 'cancelling' }])
  expect((await bridge.answer(1)).result.structuredContent.all_terminal).toBe(true)
  expect(await bridge.end()).toBe(0)
})

test('a cancelled request is let go of and gets no answer', async () => {
  await using control = await startControl()
  await using bridge = await startBridge(control.url)
  await shakeHands(bridge)
  await control.submit([{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }])
  bridge.send({
    id: 1,
    method: 'tools/call',
    params: { name: 'wait', arguments: { task_ids: ['long'], timeout_ms: 50_000 } },
  })
  await bridge.call(2, 'get_task', { task_id: 'long' })
  bridge.send({ method: 'notifications/cancelled', params: { requestId: 1 } })
  await bridge.call(3, 'get_task', { task_id: 'long' })
  expect(await bridge.end()).toBe(0)
  expect(bridge.printed.map(({ id }) => id)).toEqual(['hello', 2, 3])
})

test('it ends at the end of its input, with all that was asked answered', async () => {
  await using bridge = await startBridge(control.url)
  const call = (id: number) => ({ id, method: 'tools/call', params: { name: 'capabilities', arguments: {} } })
  const lines = [{ id: 0, ...initialize }, ...Array.from({ length: 50 }, (_, i) => call(i + 1))]
  bridge.write(lines.map((line) => `${JSON.stringify({ jsonrpc: '2.0', ...line })}\r\n`).join('\n'))
  expect(await bridge.end()).toBe(0)
  expect(bridge.printed.map(({ id }) => Number(id)).sort((a, b) => a - b)).toEqual(
    Array.from({ length: 51 }, (_, i) => i),
  )
  expect(await bridge.stderr).toBe('')
})

test('a stream that has no end ends with the input', async () => {
  await using bridge = await startBridge(control.url)
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  bridge.send({ id: 'l', method: 'subscriptions/listen', params: { notifications: {}, _meta } })
  await until(
    () => bridge.printed.map(({ method }) => method),
    (methods) => methods.includes('notifications/subscriptions/acknowledged'),
  )
  expect(await bridge.end()).toBe(0)
})

test('an empty input, and SIGTERM, end it without a word', async () => {
  await using empty = await startBridge(control.url)
  expect(await empty.end()).toBe(0)
  expect([empty.printed, await empty.stderr]).toEqual([[], ''])
  await using killed = await startBridge(control.url)
  await shakeHands(killed)
  killed.process.kill('SIGTERM')
  expect(await killed.process.exited).toBe(143)
  expect(killed.printed.length).toBe(1)
})

test('errors are JSON-RPC errors, each for the id that waits for it', async () => {
  const url = `http://127.0.0.1:${await freePort()}`
  await using bridge = await startBridge(url)
  expect((await bridge.request({ id: 1, ...initialize })).error).toEqual({
    code: -32000,
    message: `cannot reach the control service at ${url}: connection refused (is it running? start it with taskmill up, or set SERVICE_URL)`,
  })
  bridge.write('{broken\n')
  expect((await bridge.answer(null)).error).toEqual({ code: -32700, message: 'this line is not JSON' })
  bridge.write(`[${[7, 8].map((id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })).join()}]\n`)
  expect([(await bridge.answer(7)).error?.code, (await bridge.answer(8)).error?.code]).toEqual([-32000, -32000])
  bridge.send({ method: 'notifications/initialized' })
  expect(await bridge.end()).toBe(0)
  expect(await bridge.stderr).toContain('taskmill: cannot reach the control service')
})

test('control may come later', async () => {
  const port = await freePort()
  await using bridge = await startBridge(`http://127.0.0.1:${port}`)
  expect((await bridge.request({ id: 1, ...initialize })).error?.code).toBe(-32000)
  await using control = await startControl({ flags: ['--addr', `127.0.0.1:${port}`] })
  expect(control.url).toContain(String(port))
  expect((await bridge.request({ id: 2, ...initialize })).result.serverInfo.name).toBe('taskmill')
})

test('SERVICE_TOKEN is sent, and asked for when it is missing', async () => {
  await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame-42' } })
  await using bridge = await startBridge(control.url, { SERVICE_TOKEN: 'sesame-42' })
  await shakeHands(bridge)
  await using without = await startBridge(control.url)
  expect((await without.request({ id: 1, ...initialize })).error).toEqual({
    code: -32000,
    message: `${control.url}/mcp answered 401: a token is needed: send Authorization: Bearer <token> (check SERVICE_TOKEN)`,
  })
})

test('something else at the address is told apart from the service', async () => {
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response('<html>') })
  try {
    await using bridge = await startBridge(server.url.href)
    expect((await bridge.request({ id: 1, ...initialize })).error?.message).toBe(
      `${server.url.href}mcp answered 200: an answer that is no MCP message: is this the control service?`,
    )
  } finally {
    await server.stop(true)
  }
})

test('an answer that is cut off is an error', async () => {
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => new Response(': nothing\n\n', { headers: { 'content-type': 'text/event-stream' } }),
  })
  try {
    await using bridge = await startBridge(server.url.href)
    expect((await bridge.request({ id: 1, ...initialize })).error?.message).toBe(
      `${server.url.href}mcp ended its answer too early`,
    )
  } finally {
    await server.stop(true)
  }
})

test('a session that a server opens is kept', async () => {
  const sessions: (string | null)[] = []
  const versions: (string | null)[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      sessions.push(request.headers.get('mcp-session-id'))
      versions.push(request.headers.get('mcp-protocol-version'))
      const { id } = (await request.json()) as { id: number }
      const result = { protocolVersion: '2025-06-18' }
      return Response.json({ jsonrpc: '2.0', id, result }, { headers: { 'mcp-session-id': 's-1' } })
    },
  })
  try {
    await using bridge = await startBridge(server.url.href)
    await bridge.request({ id: 1, ...initialize })
    await bridge.request({ id: 2, method: 'ping' })
    expect([sessions, versions]).toEqual([
      [null, 's-1'],
      [null, '2025-06-18'],
    ])
  } finally {
    await server.stop(true)
  }
})

test('a message that is too large ends it with an error', async () => {
  await using bridge = await startBridge('http://127.0.0.1:9')
  bridge.write('x'.repeat(4 * 1024 * 1024 + 1))
  expect((await bridge.answer(null)).error).toEqual({ code: -32600, message: 'a message has more than 4194304 bytes' })
  expect(await bridge.process.exited).toBe(1)
})

test('that error has the id of the message where it stands before what is large', async () => {
  for (const id of [7, 'seven']) {
    await using bridge = await startBridge('http://127.0.0.1:9')
    bridge.write(
      `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"x","params":{"a":"${'x'.repeat(4 * 1024 * 1024)}`,
    )
    expect((await bridge.answer(id)).error?.code).toBe(-32600)
    expect(await bridge.process.exited).toBe(1)
  }
})

test('a last line without an end is answered', async () => {
  await using bridge = await startBridge(control.url)
  bridge.write('{"jsonrpc":"2.0","id":1,"method":"ping"}')
  expect(await bridge.end()).toBe(0)
  expect(bridge.printed).toMatchObject([{ id: 1 }])
})

test('more requests at a time than are let through are refused, not left unread', async () => {
  await using bridge = await startBridge(control.url)
  await control.submit([{ id: 'long', type: 'sleep', params: { duration_ms: 600_000 } }])
  const params = { name: 'wait', arguments: { task_ids: ['long'], timeout_ms: 50_000 } }
  for (let id = 1; id <= 257; id++) bridge.send({ id, method: 'tools/call', params })
  expect((await bridge.answer(257)).error?.message).toBe('more than 256 requests at a time; wait for some of them')
})

test('usage errors are the envelope of every subcommand', async () => {
  const { exitCode, envelope } = await runClient(['mcp', 'more'])
  expect([exitCode, envelope.error?.message]).toEqual([2, 'unexpected argument "more" for mcp (see mcp --help)'])
  expect((await runClient(['mcp'], { url: 'nonsense' })).exitCode).toBe(2)
  expect((await runClient(['mcp', '--help'])).stdout).toBe('')
})

describe('install-mcp', () => {
  const install = async (args: readonly string[], env: Record<string, string> = {}) => {
    const { exitCode, envelope } = await runClient(['install-mcp', ...args], { url: 'http://127.0.0.1:9000', env })
    expect(exitCode).toBe(0)
    return envelope.data as { client: string; config: unknown; command?: string; file: string; notes: string[] }
  }

  test('prints what the hosts want to be told, and asks nobody', async () => {
    const url = 'http://127.0.0.1:9000/mcp'
    expect((await install([])).config).toEqual({ mcpServers: { taskmill: { type: 'http', url } } })
    const claude = await install(['--client', 'claude'])
    expect(claude.config).toEqual({ mcpServers: { taskmill: { type: 'http', url } } })
    expect(claude.command).toBe(`claude mcp add --transport http taskmill ${url}`)
    expect((await install(['--client', 'cursor'])).config).toEqual({ mcpServers: { taskmill: { url } } })
    const codex = await install(['--client', 'codex'])
    expect(codex.config).toBe(`[mcp_servers.taskmill]\nurl = "${url}"\n`)
    expect(Bun.TOML.parse(String(codex.config))).toEqual({ mcp_servers: { taskmill: { url } } })
  })

  test.each(['generic', 'claude', 'cursor', 'codex'])('%s never gets to see the token', async (client) => {
    for (const transport of ['http', 'stdio']) {
      const data = await install(['--client', client, '--transport', transport], { SERVICE_TOKEN: 'sesame-42' })
      expect(JSON.stringify(data)).not.toContain('sesame-42')
      expect(JSON.stringify(data)).toContain('SERVICE_TOKEN')
    }
  })

  test.each([
    [[], 'graphs'],
    [['--toolsets', 'schedules'], 'schedules'],
  ] as const)('over stdio the host starts this very program, and what is printed works, with %j', async (sets, set) => {
    const { envelope } = await runClient(['install-mcp', '--transport', 'stdio', ...sets], { url: control.url })
    const { command, args, env } = (
      envelope.data as {
        config: { mcpServers: { taskmill: { command: string; args: string[]; env: Record<string, string> } } }
      }
    ).config.mcpServers.taskmill
    expect(command).toBe(await builtProgram('taskmill'))
    const client = new Client({ name: 'tests', version: '1' })
    await client.connect(new StdioClientTransport({ command, args, env: testEnvironment(env) }))
    expect((await client.listTools()).tools.length).toBe(TOOLS_BY_SET[set].length)
    await client.close()
  })

  test('--toolsets goes into the address, or into the arguments of taskmill mcp', async () => {
    const sets = ['--toolsets', 'graphs,schedules']
    const url = 'http://127.0.0.1:9000/mcp?toolsets=graphs,schedules'
    expect((await install(sets)).config).toEqual({ mcpServers: { taskmill: { type: 'http', url } } })
    const claude = await install(['--client', 'claude', ...sets])
    expect(claude.command).toBe(`claude mcp add --transport http taskmill '${url}'`)
    const stdio = await install(['--client', 'claude', '--transport', 'stdio', ...sets])
    expect(stdio.command).toEndWith(' mcp --toolsets graphs,schedules')
    expect(stdio.config).toMatchObject({ mcpServers: { taskmill: { args: ['mcp', ...sets] } } })
    const { exitCode, envelope } = await runClient(['install-mcp', '--toolsets', 'none'])
    expect([exitCode, envelope.error?.message]).toEqual([
      2,
      expect.stringContaining('sets of tools (graphs, schedules, live, all)'),
    ])
  })

  test('another client is a usage error', async () => {
    const { exitCode, envelope } = await runClient(['install-mcp', '--client', 'emacs'])
    expect(exitCode).toBe(2)
    expect(envelope.error?.message).toContain('generic or claude or codex or cursor or vscode')
  })
})

/** MCP servers that are reached by streamable HTTP: sessions, streams, and all that can go wrong with them. */
import { expect, test } from 'bun:test'
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server'
import { freePort } from '../support/free-port.ts'
import { startMcpControl, textOf, WRONG_ANSWERS } from '../support/mcp.ts'
import { startMcpHttpServer } from '../support/mcp-http-server.ts'
import { until } from '../support/until.ts'

test('tools are listed and called, with the headers of the configuration', async () => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl(
    {
      web: { type: 'http', url: server.url.replace('/mcp', '/private'), headers: { Authorization: `Bearer \${KEY}` } },
    },
    { env: { KEY: 'k-42' } },
  )
  expect(textOf(await mcp.run('web/say', { words: 'hello' }))).toBe('hello')
  expect(server.received.every(({ headers }) => headers.get('authorization') === 'Bearer k-42')).toBe(true)
  expect(JSON.stringify(mcp.control.log)).not.toContain('k-42')
})

test('an answer may come in a stream, after progress', async () => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  const task = await mcp.run('web/stream')
  expect(textOf(task)).toBe('streamed')
  expect(task.progress?.map(({ data }) => data)).toEqual([{ progress: 3 }])
  expect(textOf(await mcp.run('web/many-events'))).toBe('after 20 MB')
})

test('a server of the newer era is spoken to in that', async () => {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'modern', version: '1' }, { capabilities: { tools: {} } })
      server.registerTool('era', { description: 'Which.' }, () => ({
        content: [{ type: 'text', text: String(server.server.getNegotiatedProtocolVersion()) }],
      }))
      return server
    },
    { legacy: 'reject' },
  )
  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: (request) => handler.fetch(request) })
  try {
    await using mcp = await startMcpControl({ web: { url: server.url.href } })
    expect(textOf(await mcp.run('web/era'))).toBe('2026-07-28')
  } finally {
    await handler.close()
    await server.stop(true)
  }
})

test.each([
  ['cut', /^mcp server web: the stream ended before the answer$/],
  ['cut-for-good', /^mcp server web: the stream ended before the answer$/],
  ['cut-and-refused', /^mcp server web: the stream ended before the answer$/],
  ['broken', /^mcp server web answered HTTP 500: .*no luck today/],
  ['nothing', /^mcp server web: it sent no answer$/],
  ['page', /^mcp server web: Unexpected content type: text\/html/],
  ['garbage', /^mcp server web: /],
  ['elsewhere', /^mcp server web answered HTTP 307: .*redirect/],
  ['big', /it sent a message of more than 16777216 bytes/],
  ['big-event', /^mcp server web: the stream ended before the answer$/],
])('an answer that is none (%s) fails the task, and the next call works', async (tool, error) => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  const task = await mcp.run(`web/${tool}`)
  expect(task.error).toMatch(error)
  expect(task.runtime?.error?.code).toBe('external_failure')
  expect(textOf(await mcp.run('web/say', { words: 'still there' }))).toBe('still there')
})

test('what a server says to nobody, or to others, is no answer', async () => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  expect(textOf(await mcp.run('web/noisy'))).toBe('heard')
  const { error } = await mcp.run('web/nobodys')
  expect(error).toBe('mcp server web: it sent no answer but an error: whose was that?')
})

test.each([false, true])('an answer that is no MCP result fails the task (in a stream: %p)', async (inStream) => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  for (const [members, fault] of WRONG_ANSWERS) {
    const task = await mcp.run('web/raw', { members, inStream }, { timeout: 30_000 })
    expect(task.error).toBe(`mcp server web: its answer is no MCP result: ${fault}`)
    expect(task.runtime?.error?.code).toBe('external_failure')
  }
  expect(textOf(await mcp.run('web/say', { words: 'still there' }))).toBe('still there')
})

test.each(['hang', 'hang-in-a-stream'])('a timeout is told to the server, and %s is let go of', async (tool) => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  await mcp.run('web/say', { words: 'warm' })
  const task = await mcp.run(`web/${tool}`, {}, { timeout: 1_000 }) // in which the call arrives
  expect(task.error).toBe('task timed out after 1000ms')
  await until(server.held, (held) => held === 0)
  const call = server.received.find(({ message }) => message.params?.name === tool)!.message
  const cancelled = server.received.filter(({ message }) => message.method === 'notifications/cancelled')
  expect(cancelled.map(({ message }) => message.params?.requestId)).toEqual([call.id])
  expect(textOf(await mcp.run('web/say', { words: 'still there' }))).toBe('still there')
})

test('a cancel is, too', async () => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  await mcp.control.submit([{ id: 'hang', type: 'mcp', tool_name: 'web/hang' }])
  await until(server.held, (held) => held === 1)
  await mcp.control.fetch('/tasks/hang/cancel', { method: 'POST' })
  expect((await mcp.control.ended('hang')).status).toBe('cancelled')
  await until(server.held, (held) => held === 0)
})

test('a session that the server has forgotten is opened anew, and the call is made once', async () => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({ web: { url: server.url } })
  await mcp.run('web/say', { words: 'first' })
  server.forgetSessions()
  expect(textOf(await mcp.run('web/say', { words: 'second' }))).toBe('second')
  const calls = server.received.filter(({ message }) => message.method === 'tools/call')
  expect(calls.map(({ message }) => message.params?.arguments?.words)).toEqual(['first', 'second', 'second'])
})

test('a server that wants a token, is away, or is something else', async () => {
  await using server = startMcpHttpServer()
  await using mcp = await startMcpControl({
    private: { url: server.url.replace('/mcp', '/private') },
    away: { url: `http://ada:secret@127.0.0.1:${await freePort()}/mcp?key=secret` },
    nowhere: { url: 'http://no..host/mcp' }, // no name server is asked for this
  })
  const failed = async (name: string) => {
    const { error, runtime } = await mcp.run(name)
    return [error, runtime?.error?.code]
  }
  expect(await failed('private/say')).toEqual([
    'mcp server private refuses us (HTTP 401): give it what it wants in "headers" of the --mcp-config',
    'external_failure',
  ])
  const [away, code] = await failed('away/say')
  expect(away).toMatch(/^mcp server away at http:\/\/127\.0\.0\.1:\d+\/mcp: connection refused \(is it running\?\)$/)
  expect(code).toBe('external_failure')
  expect((await failed('nowhere/say'))[0]).toBe('mcp server nowhere at http://no..host/mcp: no such host')
})

test('sessions are ended with the service', async () => {
  await using server = startMcpHttpServer()
  const mcp = await startMcpControl({ web: { url: server.url } })
  await mcp.run('web/say', { words: 'hello' })
  expect(await mcp.control.stop('SIGTERM')).toBe(0)
  await mcp[Symbol.asyncDispose]()
})

/** An MCP server of the older protocol over HTTP, without an SDK. Each tool violates the protocol in its own way. */

type Message = {
  id?: number
  method: string
  params?: {
    name?: string
    arguments?: Record<string, unknown>
    requestId?: number
    _meta?: { progressToken?: number }
  }
}

interface McpHttpServer extends AsyncDisposable {
  readonly url: string
  /** Messages as they came, with the headers of their requests. */
  readonly received: { readonly message: Message; readonly headers: Headers }[]
  /** Requests that are being held. */
  readonly held: () => number
  /** Forgets all sessions, as a restart would. */
  forgetSessions(): void
}

const json = (value: unknown, init: ResponseInit = {}) => Response.json(value, init)
const text = (words: string) => ({ content: [{ type: 'text', text: words }] })
const answer = (id: unknown, result: unknown) => ({ jsonrpc: '2.0', id, result })
const event = (value: unknown, id?: string) =>
  `${id === undefined ? '' : `id: ${id}\n`}data: ${JSON.stringify(value)}\n\n`
const EVENTS = { headers: { 'content-type': 'text/event-stream' } }

export function startMcpHttpServer(): McpHttpServer {
  const received: McpHttpServer['received'] = []
  const sessions = new Set<string>()
  let held = 0
  const hold = (request: Request) =>
    new Promise<Response>((resolve) => {
      held++
      request.signal.addEventListener('abort', () => {
        held--
        resolve(new Response())
      })
    })
  const TOOLS: Record<string, (message: Message, request: Request) => Response | Promise<Response>> = {
    say: ({ id, params }) => json(answer(id, text(String(params?.arguments?.words)))),
    stream: ({ id, params }) => {
      const progressToken = params?._meta?.progressToken
      const progress = { jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: 3 } }
      return new Response(event(progress) + event(answer(id, text('streamed'))), EVENTS)
    },
    /** Streams what is none of the caller's business before the answer. */
    noisy: ({ id }) => {
      const nobodys = event({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'whose was that?' } })
      const others = event({ jsonrpc: '2.0', id: Number(id) + 1000, result: null })
      const status = `event: status\n${event({ id, result: 'half way' })}`
      return new Response(nobodys + others + status + event(answer(id, text('heard'))), EVENTS)
    },
    /** An error for no request, as the whole body. */
    nobodys: () => json({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'whose was that?' } }),
    /** Answers with the members that it is given; in a stream, it leaves that open. */
    raw: ({ id, params }, request) => {
      const { members, inStream } = params!.arguments as { members: object; inStream: boolean }
      const message = { jsonrpc: '2.0', id, ...members }
      if (!inStream) return json(message)
      const start = (controller: ReadableStreamDefaultController) => {
        controller.enqueue(new TextEncoder().encode(event(message)))
        request.signal.addEventListener('abort', () => controller.close())
      }
      return new Response(new ReadableStream({ start }), EVENTS)
    },
    nothing: () => json([]),
    cut: () => new Response(': nothing will come\n\n', EVENTS),
    'cut-for-good': () => new Response(`id: 1\nretry: 10\ndata:\n\n`, EVENTS),
    'cut-and-refused': () => new Response(`id: refused\nretry: 10\ndata:\n\n`, EVENTS),
    hang: (_, request) => hold(request),
    'hang-in-a-stream': (_, request) =>
      new Response(
        new ReadableStream({
          start(controller) {
            held++
            controller.enqueue(new TextEncoder().encode(': wait\n\n'))
            request.signal.addEventListener('abort', () => held--)
          },
        }),
        EVENTS,
      ),
    big: ({ id }) => json(answer(id, text('x'.repeat(17_000_000)))),
    'big-event': ({ id }) => new Response(event(answer(id, text('x'.repeat(17_000_000)))), EVENTS),
    'many-events': ({ id }) => {
      const chatter = event({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'info', data: 'x'.repeat(1_000_000) },
      })
      return new Response(chatter.repeat(20) + event(answer(id, text('after 20 MB'))), EVENTS)
    },
    broken: () => new Response('no luck today', { status: 500 }),
    page: () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
    garbage: () => new Response('{"jsonrpc":', { headers: { 'content-type': 'application/json' } }),
    elsewhere: () => Response.redirect('http://127.0.0.1:9/mcp', 307),
  }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname === '/private' && request.headers.get('authorization') !== 'Bearer k-42') {
        return new Response('who are you', { status: 401 })
      }
      if (request.method === 'DELETE') sessions.delete(request.headers.get('mcp-session-id') ?? '')
      if (request.headers.get('last-event-id') === 'refused') return new Response(null, { status: 500 })
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const message = (await request.json()) as Message
      received.push({ message, headers: request.headers })
      if (message.method === 'server/discover')
        return json(
          { jsonrpc: '2.0', id: message.id, error: { code: -32601, message: 'Method not found' } },
          { status: 400 },
        )
      if (message.method === 'initialize') {
        const session = crypto.randomUUID()
        sessions.add(session)
        const capabilities = { tools: {} }
        const result = { protocolVersion: '2025-06-18', capabilities, serverInfo: { name: 'http', version: '1' } }
        return json(answer(message.id, result), { headers: { 'mcp-session-id': session } })
      }
      if (!sessions.has(request.headers.get('mcp-session-id') ?? ''))
        return new Response('no such session', { status: 404 })
      if (message.id === undefined) return new Response(null, { status: 202 })
      if (message.method === 'tools/list') {
        return json(
          answer(message.id, { tools: Object.keys(TOOLS).map((name) => ({ name, inputSchema: { type: 'object' } })) }),
        )
      }
      return TOOLS[message.params!.name!]!(message, request)
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}/mcp`,
    received,
    held: () => held,
    forgetSessions: () => sessions.clear(),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

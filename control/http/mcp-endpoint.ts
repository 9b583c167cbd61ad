/** POST /mcp: the service as an MCP server. The SDK is loaded with the first request. */

import type { AnyElysia } from 'elysia'
import { ServiceError } from '../../shared/contract/errors.ts'
import { MAX_TOOL_WAIT_MS } from '../../shared/contract/mcp-limits.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import { TOOLSET_WORDS, toolsetsIn } from '../../shared/contract/toolsets.ts'
import { callerOf, endingWithToken } from '../../shared/http/callers.ts'
import { described, empty, json, repeatable } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { urlOf } from '../../shared/http/request-url.ts'
import { traceIdOf, traceOf } from '../../shared/http/service.ts'
import { WRITE_TIMEOUT_SECONDS } from '../../shared/http/time-limits.ts'
import { isObject } from '../../shared/text/json.ts'
import type { NamedGraph } from '../log/keeper.ts'
import type { OperationParts } from '../operations/parts.ts'
import type { PartsFor } from '../operations/tenant-view.ts'
import { addressOf } from './audit.ts'
import { type ForwardOptions, forwarderOf, isEventStream } from './forwarding.ts'

/** Maximum bytes of one message, which is parsed in one go. POST /tasks accepts larger graphs. */
export const MAX_MCP_BODY_BYTES = 4 * 1024 * 1024

/** Seconds without a byte until an answer is given up. Longer than the longest wait of a tool. */
const ANSWER_TIMEOUT_SECONDS = MAX_TOOL_WAIT_MS / 1000 + WRITE_TIMEOUT_SECONDS

/** A message of the protocol, which has its own specification. */
const JsonRpcMessage = Type.Object(
  { jsonrpc: Type.Literal('2.0') },
  { additionalProperties: true, description: 'A message as in modelcontextprotocol.io.' },
)

export function addMcpEndpoint(app: AnyElysia, parts: OperationParts, partsFor: PartsFor): AnyElysia {
  const load = async () => (await import('../mcp-server/handler.ts')).createHandler(parts)
  let handler: ReturnType<typeof load> | undefined
  const forward = forwarderOf(app, partsFor)
  const answerOfOwner = async (request: Request, body: unknown, options: ForwardOptions) => {
    for (const subject of subjectsOf(body)) {
      if (partsFor(request).keeper.others.isHere(subject)) return undefined
      const answer = await forward(request, subject, options).catch((error) => toolError(body, error))
      if (answer !== undefined) return answer
    }
    return undefined
  }
  return app.post(
    '/mcp',
    async ({ request, query, set }) => {
      const bytes = await readBody(app, request, Math.min(parts.maxBodyBytes, MAX_MCP_BODY_BYTES))
      app.server?.timeout(request, ANSWER_TIMEOUT_SECONDS)
      const body = parsed(bytes)
      const toolsets = query.toolsets === undefined ? parts.mcpToolsets : toolsetsIn(String(query.toolsets))
      if ('unknown' in toolsets) return unknownToolset(body, toolsets.unknown)
      const ofOwner = await answerOfOwner(request, body, {
        traceId: traceIdOf(set),
        body: bytes,
        waitMs: MAX_TOOL_WAIT_MS,
      })
      if (ofOwner !== undefined) return ofOwner
      const from = parts.audit && addressOf(app, request)
      const sender = { ...traceOf(set, request), by: callerOf(request), from, toolsets }
      handler ??= load()
      const { serve } = await handler
      // The protocol handler answers a body that is not JSON. It would take invalid UTF-8 for other characters.
      if (body === undefined) return serve(withBody(request, NOT_JSON), undefined, sender)
      const served = request.url === urlOf(request) ? request : withBody(request, bytes)
      const answer = await serve(served, body, sender)
      return isEventStream(answer) ? endingWithToken(request, answer) : answer
    },
    described({
      section: 'MCP server',
      right: 'any',
      summary: 'Send an MCP message',
      description: 'The service as an MCP server (Streamable HTTP). One JSON-RPC message a request.',
      query: {
        toolsets: repeatable(
          'Sets of tools that the caller sees and calls. Default: those of --mcp-toolsets.',
          TOOLSET_WORDS,
        ),
      },
      body: JsonRpcMessage,
      example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      answers: {
        200: { ...json(JsonRpcMessage, 'The answer of the server.'), otherType: 'text/event-stream' },
        202: empty('A notification is accepted.'),
      },
      errors: {
        400: 'The message is invalid, or a set of tools is unknown.',
        404: 'The service has no such method.',
        406: 'The Accept header lacks application/json or text/event-stream.',
        413: 'The message is too large.',
        415: 'The Content-Type is not application/json.',
      },
      errorSchema: JsonRpcMessage,
    }),
  )
}

/** As the protocol tells it, so that hosts show it. */
function unknownToolset(body: unknown, name: string): Response {
  const id = isObject(body) ? (body.id ?? null) : null
  const message = `unknown set of tools ${JSON.stringify(name)}: expected ${TOOLSET_WORDS.join(', ')}, with commas between them`
  return Response.json({ jsonrpc: '2.0', id, error: { code: INVALID_PARAMS, message } }, { status: 400 })
}

const INVALID_PARAMS = -32602

/** The answer to a call of a tool whose graph no replica can show now. A plain error would look like a broken connection. */
function toolError(body: unknown, error: unknown): Response {
  if (!(error instanceof ServiceError) || !isObject(body) || body.id == null) throw error
  // Only the newest revision of the protocol knows `resultType`, and demands it.
  const result = { resultType: 'complete', content: [{ type: 'text', text: error.message }], isError: true }
  return Response.json({ jsonrpc: '2.0', id: body.id, result })
}

const NOT_JSON = new Uint8Array()

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

const withBody = (request: Request, body: Uint8Array): Request => {
  const { method, headers, signal } = request
  return new Request(urlOf(request), { method, headers, signal, body: new Uint8Array(body) })
}

/** Where to look, one after the other; nothing for a message that names none. A text may be the id of a task, or `graph_id/task_id`. */
function subjectsOf(body: unknown): NamedGraph[] {
  if (!isObject(body) || body.method !== 'tools/call' || !isObject(body.params)) return []
  const given = body.params.arguments
  if (!isObject(given)) return []
  const { graph_id, task_id, task_ids } = given
  if (typeof graph_id === 'string') return [{ graphId: graph_id }]
  const [id] = typeof task_id === 'string' ? [task_id] : Array.isArray(task_ids) ? task_ids : []
  if (typeof id !== 'string') return []
  const slash = id.indexOf('/')
  return [{ taskId: id }, ...(slash > 0 ? [{ graphId: id.slice(0, slash) }] : [])]
}

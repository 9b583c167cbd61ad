/** /mcp/tools, /mcp/call, /mcp/tasks: tools of MCP servers for callers without a graph. */
import type { AnyElysia } from 'elysia'
import { badRequest } from '../../shared/contract/errors.ts'
import { HandleRecord, McpCallRequest, McpTools } from '../../shared/contract/mcp.ts'
import { callerOf } from '../../shared/http/callers.ts'
import { described, json } from '../../shared/http/openapi/route.ts'
import { readBody } from '../../shared/http/request-body.ts'
import { traceOf } from '../../shared/http/service.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import {
  didYouMean,
  FREE_FIELDS,
  firstUnknown,
  quoted,
  type UnknownFields,
} from '../../shared/request/unknown-names.ts'
import { isObject, jsonTypeOf, withoutNulls } from '../../shared/text/json.ts'
import { nearestName, type Synonyms } from '../../shared/text/nearest-name.ts'
import { checkValue, decodeJson, invalidJson } from '../json/body.ts'
import { checkOf } from '../json/schema-check.ts'
import { getCall } from '../operations/get.ts'
import { callTool, listTools, type ToolCall } from '../operations/mcp-tools.ts'
import type { PartsFor } from '../operations/tenant-view.ts'

/** Seconds to ask all servers for their tools: more than each server gets to start and to answer. */
const DISCOVER_TIMEOUT_SECONDS = 100

const section = 'Tools of MCP servers'

export function addMcpRoutes(app: AnyElysia, partsFor: PartsFor): AnyElysia {
  return app
    .get(
      '/mcp/tools',
      ({ request }): Promise<McpTools> => {
        app.server?.timeout(request, DISCOVER_TIMEOUT_SECONDS)
        return listTools(partsFor(request), request.signal, callerOf(request))
      },
      described({
        section,
        right: 'read',
        summary: 'List the tools of all MCP servers',
        answers: { 200: json(McpTools, 'The tools, and the servers that did not answer.') },
        errors: { 503: 'The service is stopping.' },
      }),
    )
    .post(
      '/mcp/call',
      async ({ request, set }): Promise<HandleRecord> => {
        const parts = partsFor(request)
        const call = await runCooperatively(
          decodeCall(await readBody(app, request, parts.maxBodyBytes), parts.unknownFields),
        )
        const handle = await callTool(parts, call, { ...traceOf(set, request), caller: request, by: callerOf(request) })
        set.status = 202
        return handle
      },
      described({
        section,
        right: 'submit',
        summary: 'Call a tool',
        description: 'Submits one task of type mcp, and answers once it is on disk.',
        body: McpCallRequest,
        example: { tool_name: 'builtin/echo', input: { message: 'hello' } },
        answers: { 202: json(HandleRecord, 'The call is accepted.') },
        errors: {
          400: 'The call is invalid. Nothing is stored.',
          409: 'A task with this id has not ended.',
          413: 'The body is too large.',
          503: 'The service cannot store the call.',
        },
      }),
    )
    .get(
      '/mcp/tasks/:id',
      ({ params, request }) => getCall(partsFor(request), params.id),
      described({
        section,
        right: 'read',
        summary: 'Read a call',
        params: { id: 'The handle_id of the call.' },
        answers: { 200: json(HandleRecord, 'The state of the call.') },
        errors: { 404: 'There is no such call.' },
      }),
    )
}

const CALL_FIELDS = Object.keys(McpCallRequest.properties)
const KNOWN_CALL_FIELDS = new Set([...CALL_FIELDS, ...FREE_FIELDS])

/** Names that MCP and models use for the fields of a call. */
const CALL_SYNONYMS: Synonyms = {
  ...{ arguments: 'input', args: 'input', params: 'input', name: 'tool_name', tool: 'tool_name' },
  ...{ handle_id: 'id', task_id: 'id' },
}

function refuseUnknown(call: object): void {
  const name = firstUnknown(call, KNOWN_CALL_FIELDS)
  if (name === undefined) return
  throw badRequest(`unknown field ${quoted(name)}${didYouMean(nearestName(name, CALL_FIELDS, CALL_SYNONYMS))}`)
}

/** The body, or throws 400. */
function* decodeCall(body: Uint8Array, unknownFields: UnknownFields): Steps<ToolCall> {
  const given = (yield* decodeJson(body, {})) ?? {}
  if (!isObject(given)) throw invalidJson(`expected object with a tool_name, got ${jsonTypeOf(given)}`)
  const call = withoutNulls(given)
  const check = checkOf(McpCallRequest)
  if (!check.accepts(call)) {
    const { path, expected, found } = check.faultOf(call)
    throw invalidJson(`${path}: expected ${expected}, got ${jsonTypeOf(found)}`)
  }
  checkValue(call.input, 'input')
  if (unknownFields === 'refuse') refuseUnknown(given)
  const { tool_name } = call
  if (tool_name === undefined || tool_name.trim() === '') throw badRequest('tool_name is required')
  return { ...call, tool_name }
}

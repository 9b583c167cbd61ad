/** Messages for POST /mcp, with inputs that fit the schemas which the service lists for its tools. */
import fc from 'fast-check'
import type { Schema } from '../../../shared/http/openapi/document.ts'
import { anyJson, type Json } from './safe-values.ts'
import { valuesOf } from './schema-values.ts'

export interface ListedTool {
  readonly name: string
  readonly inputSchema: Schema
}

const CLIENT = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'fuzzer', version: '1' } }

export function mcpMessages(tools: readonly ListedTool[]): fc.Arbitrary<Json> {
  const call = fc
    .constantFrom(...tools)
    .chain(({ name, inputSchema }) => valuesOf(inputSchema, {}).map((input) => ({ name, arguments: input })))
  const calls = call.map((params) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }))
  const methods = ['initialize', 'ping', 'tools/list', 'server/discover', 'resources/list', 'notifications/initialized']
  const rest = fc
    .record({
      method: fc.constantFrom(...methods, 'tools/call', 'no/such', ''),
      id: fc.constantFrom<Json>(1, 'a', null),
      params: fc.oneof(fc.constant<Json>(CLIENT), anyJson),
    })
    .map((message): Json => ({ jsonrpc: '2.0', ...message }))
  return fc.oneof({ weight: 4, arbitrary: calls as fc.Arbitrary<Json> }, { weight: 1, arbitrary: rest })
}

/** The tools of the service at `url`. */
export async function listedTools(url: string): Promise<readonly ListedTool[]> {
  const response = await fetch(`${url}/mcp`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
  const text = await response.text()
  const json = text.startsWith('{') ? text : text.slice(text.indexOf('data: ') + 'data: '.length)
  return (JSON.parse(json) as { result: { tools: ListedTool[] } }).result.tools
}

/** What HTTP wants to know of a message, and whose answers are waited for. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { answerIdsOf, headersFor, idAtStart, type Message } from '../../../adapter/bridge/message.ts'

describe('headersFor', () => {
  const modern = (method: string, params: Record<string, unknown>): Message => ({
    jsonrpc: '2.0',
    method,
    params: { ...params, _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
  })

  test.each<[string, Message, string | undefined, Record<string, string>]>([
    ['nothing is known yet', { jsonrpc: '2.0', method: 'initialize' }, undefined, {}],
    ['the older era', { jsonrpc: '2.0', method: 'ping' }, '2025-06-18', { 'mcp-protocol-version': '2025-06-18' }],
    [
      'a call of the newer era',
      modern('tools/call', { name: 'wait' }),
      '2025-06-18',
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'wait' },
    ],
    [
      'a resource',
      modern('resources/read', { uri: 'a:b', name: 'x' }),
      undefined,
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'resources/read', 'mcp-name': 'a:b' },
    ],
    [
      'a name that no header can hold',
      modern('tools/call', { name: 'größe' }),
      undefined,
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': '=?base64?Z3LDtsOfZQ==?=' },
    ],
    [
      'a call without a name',
      modern('tools/call', {}),
      undefined,
      { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call' },
    ],
  ])('%s', (_, message, agreed, headers) => {
    expect(headersFor(message, agreed)).toEqual(headers)
  })

  test('whatever a message holds, the headers can be sent', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (method, name) => {
        const headers = headersFor(modern(method, { name, uri: name, taskId: name }), undefined)
        expect(() => new Headers(headers)).not.toThrow()
      }),
    )
  })
})

test.each<[unknown, unknown[]]>([
  [{ id: 1, method: 'a' }, [1]],
  [{ id: 'x', method: 'a' }, ['x']],
  [{ id: null, method: 'a' }, []],
  [{ method: 'a' }, []],
  [{ id: 1, result: {} }, []],
  [
    [{ id: 1, method: 'a' }, { method: 'b' }, { id: 2, method: 'c' }, 7],
    [1, 2],
  ],
  ['text', []],
  [null, []],
])('%j waits for %j', (value, ids) => {
  expect(answerIdsOf(value)).toEqual(ids as never)
})

test.each([
  ['{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"', 7],
  ['{ "method" : "a\\"b,", "id" : "x\\"y" , "params"', 'x"y'],
  ['{"a":true,"method":"y","b":-1.5e3,"id":-3,', -3],
  ['{"jsonrpc":"2.0","id":9,"result":{"a":"', undefined],
  ['{"id":null,"params":{"id":7,', undefined],
  ['{"params":{"id":7,"a":"', undefined],
  ['{"id":7', undefined],
  ['{"id":-,"a":1', undefined],
  ['{"id":"\\q","a":1', undefined],
  ['xxxx', undefined],
  ['', undefined],
])('the id at the start of %j is %p', (text, id) => expect(idAtStart(text)).toBe(id))

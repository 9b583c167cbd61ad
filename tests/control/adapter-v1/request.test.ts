/**
 * Goal: a body is taken as the request that it is, or refused with the name of the field that is wrong.
 * Method: a table of bodies and texts; each is tried as it is and padded beyond the size that is parsed at once.
 */
import { describe, expect, test } from 'bun:test'
import { decodeRequest } from '../../../control/adapter-v1/request.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { refusal } from '../../support/actions.ts'

const PADDING = ' '.repeat(512 * 1024)

const decode = (body: string) => runSync(decodeRequest(new TextEncoder().encode(body), 'refuse'))
const decodeInSlices = (body: string) => decode(PADDING + body)

describe('a request', () => {
  test('comes out as it was given, without what is null', () => {
    const action = { kind: 'noop', tool_name: null, input: { a: null }, depends_on: ['x'], retry: 0, timeout: -1 }
    const body = JSON.stringify({ adapter: 'codex', agent_id: null, metadata: { k: 'v' }, action, 'x-more': [1] })
    const request = {
      adapter: 'codex',
      metadata: { k: 'v' },
      action: { kind: 'noop', input: { a: null }, depends_on: ['x'], retry: 0, timeout: -1 },
      'x-more': [1],
    }
    expect(decode(body) as object).toEqual(request)
    expect(decodeInSlices(body) as object).toEqual(request)
  })

  test.each([
    ['null', 'invalid adapter action: action.kind is required'],
    ['{}', 'invalid adapter action: action.kind is required'],
    ['{"action":null}', 'invalid adapter action: action.kind is required'],
    ['{"action":{}}', 'invalid adapter action: action.kind is required'],
    ['{"action":{"kind":null}}', 'invalid adapter action: action.kind is required'],
    ['{"action":{"kind":""}}', 'invalid adapter action: action.kind is required'],
    ['{"__proto__":{"action":{"kind":"noop"}}}', 'invalid adapter action: action.kind is required'],
    ['[]', 'invalid JSON: expected object with an action, got array'],
    ['"noop"', 'invalid JSON: expected object with an action, got string'],
    ['7', 'invalid JSON: expected object with an action, got number'],
    ['{"action":"noop"}', 'invalid JSON: action: expected object, got string'],
    ['{"action":[]}', 'invalid JSON: action: expected object, got array'],
    ['{"action":{"kind":7}}', 'invalid JSON: action.kind: expected string'],
    ['{"action":{"kind":"noop","tool_name":[]}}', 'invalid JSON: action.tool_name: expected string'],
    ['{"action":{"kind":"noop","input":"x"}}', 'invalid JSON: action.input: expected object'],
    ['{"action":{"kind":"noop","input":[]}}', 'invalid JSON: action.input: expected object'],
    ['{"action":{"kind":"noop","depends_on":"a"}}', 'invalid JSON: action.depends_on: expected array of strings'],
    ['{"action":{"kind":"noop","depends_on":[1]}}', 'invalid JSON: action.depends_on: expected array of strings'],
    ['{"action":{"kind":"noop","retry":"1"}}', 'invalid JSON: action.retry: expected integer'],
    [
      '{"action":{"kind":"noop","timeout":2.5}}',
      'invalid JSON: action.timeout: expected integer of milliseconds (30000)',
    ],
    ['{"adapter":1,"action":{"kind":"noop"}}', 'invalid JSON: adapter: expected string'],
    ['{"agent_id":{},"action":{"kind":"noop"}}', 'invalid JSON: agent_id: expected string'],
    ['{"session_id":true,"action":{"kind":"noop"}}', 'invalid JSON: session_id: expected string'],
    ['{"action_id":9,"action":{"kind":"noop"}}', 'invalid JSON: action_id: expected string'],
    ['{"metadata":["a"],"action":{"kind":"noop"}}', 'invalid JSON: metadata: expected object of strings'],
    ['{"metadata":{"a":1},"action":{"kind":"noop"}}', 'invalid JSON: metadata: expected object of strings'],
    [
      '{"action":{"kind":"noop","depend_on":["a"]}}',
      'invalid adapter action: unknown field "action.depend_on" (did you mean "action.depends_on"?)',
    ],
    [
      '{"action":{"kind":"noop","arguments":{}}}',
      'invalid adapter action: unknown field "action.arguments" (did you mean "action.input"?)',
    ],
    [
      '{"agentid":"a","action":{"kind":"noop"}}',
      'invalid adapter action: unknown field "agentid" (did you mean "agent_id"?)',
    ],
    ['{"colour":"red","action":{"kind":"noop"}}', 'invalid adapter action: unknown field "colour"'],
  ])('%s is refused with %j', (body, message) => {
    expect(refusal(() => decode(body))).toBe(message)
    expect(refusal(() => decodeInSlices(body))).toBe(message)
  })

  test.each([
    '',
    ' ',
    '{',
    '{"action":{"kind":"noop"}',
    '{"action":{"kind":"noop"}} x',
    '{"action":{"input":{"tasks":[1,]}}}',
  ])('%j is not JSON', (body) => {
    expect(refusal(() => decode(body))).toMatch(/^invalid JSON: ./)
    expect(refusal(() => decodeInSlices(body))).toMatch(/^invalid JSON: ./)
  })
})

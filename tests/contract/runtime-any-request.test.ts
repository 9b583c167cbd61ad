/**
 * Requests that nobody would write: each is answered with what it asks for or with a refusal in the form of the contract,
 * never with an internal error; and whatever is accepted comes to an end. Source: spec, Errors B; contract 2 and 5.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { SubmitTaskResponse, TaskListResponse } from '../../shared/contract/runtime.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { refused } from '../support/runtime-tasks.ts'

const TERMINAL = ['success', 'failed', 'cancelled']

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-running-tasks', '8', '--max-queued-tasks', '10000'] })
  await runtime.submit({ task_id: 'known', execution: { kind: 'command', program: '/bin/true' } })
  await runtime.ended('known')
})
afterAll(() => runtime.dispose())

type Json = null | boolean | number | string | Json[] | { [key: string]: Json }

/** Nothing is wrong with it, and every field that there is is in it. Its parts that do not fit together are null. */
const WHOLE = (): Record<string, Json> => ({
  task_id: null,
  execution: { kind: 'command', program: '/bin/true', args: ['a'], script: null, interpreter: null, env: { A: 'b' } },
  limits: {
    ...{ wall_time_ms: 5_000, cpu_time_sec: 5, memory_bytes: 1 << 28, pids_max: 20 },
    ...{ stdout_max_bytes: 100, stderr_max_bytes: 100 },
  },
  sandbox: { profile: 'process', workspace_subdir: 'a', rootfs: null, chroot: null, namespaces: { pid: true } },
  policy: { capability_mode: 'adaptive' },
  control_context: {
    ...{ control_plane_mode: 'm', tenant: 't', owner: null, expected_runtime_profile: 'p' },
    ...{ requires_strict_sandbox: false, requires_resource_reservation: true, labels: { l: 'v' } },
  },
  metadata: { k: 'v' },
})

/** Values that one may meet where another was expected. None of them is the name of a program or a shell command. */
const odd: fc.Arbitrary<Json> = fc.oneof(
  fc.constantFrom<Json>(null, true, false, 0, -1, 1, 1.5, 1e300, -1e-9, 2 ** 53, 2 ** 31, 2 ** 63),
  fc.constantFrom<Json>(
    '',
    ' ',
    '\0',
    '.',
    '..',
    '/',
    '../..',
    'no-such-thing',
    'x'.repeat(5_000),
    '\ud800',
    '😀',
    '\u202e',
  ),
  fc.constantFrom<Json>([], [[]], [null], [''], ['\0'], {}, { '': '' }, { '=': 'x' }, { a: null }, { a: {} }),
  fc.constantFrom<Json>({ constructor: 'x' }, { toString: 'x', length: '1' }),
)

/** A whole request with up to three of its values replaced, or taken out. */
const mangled = fc
  .array(
    fc.record({
      path: fc.array(fc.nat(12), { minLength: 1, maxLength: 3 }),
      value: fc.option(odd, { nil: undefined }),
    }),
    {
      minLength: 1,
      maxLength: 3,
    },
  )
  .map((changes) => {
    const body = WHOLE()
    for (const { path, value } of changes) {
      let at: Record<string, Json> = body
      for (const [depth, step] of path.entries()) {
        const keys = Object.keys(at)
        const key = keys[step % Math.max(1, keys.length)]
        if (key === undefined) break
        const next = at[key]
        if (depth < path.length - 1 && typeof next === 'object' && next !== null && !Array.isArray(next)) at = next
        else {
          if (value === undefined) delete at[key]
          else at[key] = structuredClone(value)
          break
        }
      }
    }
    return body
  })

describe('POST /api/v1/tasks', () => {
  test('a mangled request is accepted and ends, or is refused with 400, and nothing in between', async () => {
    const accepted: string[] = []
    await fc.assert(
      fc.asyncProperty(mangled, async (body) => {
        const response = await runtime.post(body)
        if (response.status === 200) {
          const { task_id, handle_id, status } = (await response.json()) as SubmitTaskResponse
          expect([handle_id, status]).toEqual([task_id, 'accepted'])
          accepted.push(task_id)
        } else if (response.status === 409) {
          expect((await refused(response))[1]).toBe('conflict')
        } else {
          const [status, code, message] = await refused(response)
          expect(status).toBe(400)
          expect(['invalid_input', 'unsupported_capability', 'insufficient_resources']).toContain(code)
          expect(message).not.toBe('')
        }
      }),
      { numRuns: 400 },
    )
    for (const id of new Set(accepted)) expect(TERMINAL).toContain((await runtime.ended(id)).status)
    expect(accepted.length).toBeGreaterThan(0)
    const { tasks } = await runtime.json<TaskListResponse>('/api/v1/tasks?limit=1000')
    expect(new Set(tasks.map(({ task_id }) => task_id))).toEqual(new Set(['known', ...accepted]))
    expect((await runtime.resources()).reserved.task_slots).toBe(0)
  })

  test('any bytes are refused with 400', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 40 }), async (bytes) => {
        const response = await runtime.fetch('/api/v1/tasks', { method: 'POST', body: bytes })
        expect((await refused(response)).slice(0, 2)).toEqual([400, 'invalid_input'])
      }),
      { numRuns: 100 },
    )
  })
})

describe('queries', () => {
  const values = [
    '',
    '0',
    '-1',
    '1.5',
    '1e3',
    'abc',
    'true',
    '99999999999999999999',
    'NaN',
    '%00',
    '%ff',
    "'",
    '../..',
    '😀',
  ]

  test.each([
    ['/api/v1/tasks/known', ['wait_ms', 'no_such']],
    ['/api/v1/tasks/known/logs', ['stream', 'follow', 'no_such']],
    ['/api/v1/tasks', ['status', 'tenant', 'limit', 'cursor', 'no_such']],
  ])('with any value are answered, or refused with 400: %s', async (path, names) => {
    for (const name of names) {
      for (const value of values) {
        const response = await runtime.fetch(`${path}?${name}=${value}`)
        if (response.status === 200) await response.arrayBuffer()
        else
          expect([name, value, ...(await refused(response)).slice(0, 2)]).toEqual([name, value, 400, 'invalid_input'])
      }
    }
  })
})

test('headers with any value are no reason for an internal error', async () => {
  for (const name of [
    'x-service-owner',
    'x-trace-id',
    'content-type',
    'accept',
    'authorization',
    'origin',
    'if-none-match',
  ]) {
    for (const value of ['', ' ', '"', 'ä'.normalize(), 'x'.repeat(4_000), '\t', '{}', 'null']) {
      const response = await runtime.kill('known', { [name]: value })
      expect([200, 400, 403]).toContain(response.status)
      await response.arrayBuffer()
    }
  }
})

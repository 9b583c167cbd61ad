/** Goal: what control sends is what the task says and no more. Method: tables, and random inputs that must not break it. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { ExecutionError } from '../../../../control/executors/executor.ts'
import { ownerOf, runtimeRequest } from '../../../../control/executors/runtime/request.ts'
import { executableTask } from '../../../support/executor-context.ts'

const NOBODY = { tenant: undefined, owner: undefined }
const ADA = { tenant: 'lab', owner: 'ada' }

const requestOf = (task: object, defaults: { tenant: string | undefined; owner: string | undefined } = NOBODY) =>
  runtimeRequest(executableTask({ type: 'runtime', ...task }), { runtimeId: 'id-1', defaults })
const bodyOf = (task: object) => requestOf(task).body
const ls = { program: 'ls', args: ['-l'] }

describe('a request', () => {
  test.each<[object, object]>([
    [{ input: ls }, { execution: { kind: 'command', ...ls } }],
    [{ input: { script: 'ls' } }, { execution: { kind: 'script', script: 'ls' } }],
    [{ input: { ...ls, stdin: 'a\n' } }, { execution: { kind: 'command', ...ls, stdin: 'a\n' } }],
    [{ input: { ...ls, stdin: [1, '"'] } }, { execution: { kind: 'command', ...ls, stdin: '[1,"\\""]' } }],
    [{ input: { execution: { ...ls, stdin: 0 } } }, { execution: { kind: 'command', ...ls, stdin: '0' } }],
    [
      {
        input: {
          ...ls,
          inputs: { p: [{ task_id: 't', file: 'a/b', runtime: 'r' }, { task_id: 'u', file: '.' }, 'odd'], q: [] },
        },
      },
      {
        execution: { kind: 'command', ...ls },
        inputs: { 'p/0/a/b': { task_id: 't', file: 'a/b' }, 'p/1': { task_id: 'u', file: '.' }, 'p/2': 'odd' },
      },
    ],
    [{ input: { ...ls, stdin: null } }, { execution: { kind: 'command', ...ls } }],
    [
      {
        input: {
          ...ls,
          inputs: { a: { content: 'x' }, b: { content: { c: null } }, d: { content: null, runtime: 'r' } },
        },
      },
      {
        execution: { kind: 'command', ...ls },
        inputs: { a: { content: 'x' }, b: { content: '{"c":null}' }, d: { content: 'null' } },
      },
    ],
    [{ input: { execution: { script: 'ls' } } }, { execution: { kind: 'script', script: 'ls' } }],
    [{ input: { execution: { kind: 'script' } } }, { execution: { kind: 'script' } }],
    [{ input: { execution: { kind: 5, program: 'ls' } } }, { execution: { kind: 5, program: 'ls' } }],
    [{ input: undefined }, { execution: { kind: 'command' } }],
    [{ input: null, toolName: 'script' }, { execution: { kind: 'script' } }],
    [{ toolName: 'command', input: { script: 'ls' } }, { execution: { kind: 'command', script: 'ls' } }],
    [
      { input: { ...ls, task_id: 'mine', metadata: { a: 'b' } } },
      { execution: { kind: 'command', ...ls }, metadata: { a: 'b' } },
    ],
    [{ input: { ...ls, sandbox: 'odd' } }, { execution: { kind: 'command', ...ls }, sandbox: 'odd' }],
    [{ input: { ...ls, env: null } }, { execution: { kind: 'command', ...ls } }],
    // An earlier version took in unknown fields; the runtime service would refuse them.
    [
      {
        input: {
          ...ls,
          duration: 5,
          limits: { memory: 1, pids_max: 3 },
          sandbox: { profil: 'process', chroot: false },
        },
      },
      { execution: { kind: 'command', ...ls }, limits: { pids_max: 3 }, sandbox: { chroot: false } },
    ],
    [
      { input: { execution: { ...ls, odd: 1 }, metadata: { any: 'name' } } },
      { execution: { kind: 'command', ...ls }, metadata: { any: 'name' } },
    ],
    // A namespace that nobody knows must not leave a task less fenced in than was meant.
    [
      { input: { ...ls, sandbox: { namespaces: { nett: true } } } },
      { execution: { kind: 'command', ...ls }, sandbox: { namespaces: { nett: true } } },
    ],
  ])('of %j', (task, body) => {
    expect(bodyOf(task)).toEqual({ task_id: 'id-1', ...body })
  })

  test.each<[object, unknown]>([
    [{}, undefined],
    [{ timeout: 0 }, undefined],
    [{ timeout: -1 }, undefined],
    [{ timeout: 1_000 }, { wall_time_ms: 11_000 }],
    [{ timeout: 2 ** 60 }, { wall_time_ms: 365 * 24 * 3_600_000 }],
    [
      { timeout: 1_000, input: { ...ls, limits: { pids_max: 3 } } },
      { pids_max: 3, wall_time_ms: 11_000 },
    ],
    [{ timeout: 1_000, input: { ...ls, limits: { wall_time_ms: 5 } } }, { wall_time_ms: 5 }],
    [{ timeout: 1_000, input: { ...ls, limits: 'odd' } }, 'odd'],
    [{ input: { ...ls, limits: {} } }, {}],
  ])('has limits that fit the timeout: %j', (task, limits) => {
    expect(bodyOf({ input: ls, ...task }).limits).toEqual(limits)
  })

  test.each<[unknown, typeof NOBODY | typeof ADA, unknown, string | undefined]>([
    [undefined, NOBODY, undefined, undefined],
    [undefined, ADA, ADA, 'ada'],
    [{}, NOBODY, {}, undefined],
    [{ owner: 'bob' }, ADA, { tenant: 'lab', owner: 'bob' }, 'bob'],
    [{ owner: null, tenant: null }, ADA, ADA, 'ada'],
    [{ owner: 7 }, ADA, { tenant: 'lab', owner: 7 }, undefined],
    ['odd', ADA, 'odd', undefined],
  ])('is on behalf of whom the task says, else the service: %j', (control_context, defaults, expected, owner) => {
    const given = { input: control_context === undefined ? ls : { ...ls, control_context } }
    const request = requestOf(given, defaults)
    expect(request.body.control_context).toEqual(expected)
    expect(request.owner).toBe(owner)
    expect(ownerOf(executableTask(given), defaults)).toBe(owner)
  })
})

test('inputs of a list are where their files are, and take the place of no other', () => {
  const input = { task_id: 't', file: 'a' }
  expect(requestOf({ input: { ...ls, inputs: { p: [{ ...input, runtime: 'r' }] } } }).inputPlaces).toEqual([
    { ...input, path: 'p/0/a', runtime: 'r' },
  ])
  expect(() => bodyOf({ input: { ...ls, inputs: { p: [input], 'p/0/a': input } } })).toThrow(
    'inputs."p/0/a" is there twice: a list of inputs has it, too',
  )
})

test('the environment names the attempt, unless the caller has given that variable a value', () => {
  const envOf = (input: object) => {
    const task = executableTask({ type: 'runtime', input: { ...ls, ...input } })
    const { execution, secrets } = runtimeRequest(task, { runtimeId: 'id-1', defaults: NOBODY, attempt: 2 }).body
    return [(execution as { env?: unknown }).env, secrets]
  }
  expect(envOf({})).toEqual([{ TASKMILL_ATTEMPT: 'id-1/2' }, undefined])
  expect(envOf({ env: { A: 'b' } })).toEqual([{ A: 'b', TASKMILL_ATTEMPT: 'id-1/2' }, undefined])
  expect(envOf({ env: { TASKMILL_ATTEMPT: 'mine' } })).toEqual([{ TASKMILL_ATTEMPT: 'mine' }, undefined])
  const secrets = { TASKMILL_ATTEMPT: 'token' }
  expect(envOf({ secrets })).toEqual([undefined, secrets])
  expect(envOf({ env: 'odd' })).toEqual(['odd', undefined])
})

test('the environment names the trace, unless the caller has given it one', () => {
  const trace = { traceparent: 'parent', tracestate: 'a=b' }
  const envOf = (input: object) => {
    const task = executableTask({ type: 'runtime', input: { ...ls, ...input } })
    const { execution } = runtimeRequest(task, { runtimeId: 'id-1', defaults: NOBODY, trace }).body
    return (execution as { env?: unknown }).env
  }
  const variables = { TRACEPARENT: 'parent', TRACESTATE: 'a=b' }
  expect(envOf({})).toEqual(variables)
  expect(envOf({ env: { A: 'b' } })).toEqual({ A: 'b', ...variables })
  for (const env of [{ TRACEPARENT: 'mine' }, { TRACESTATE: 'mine' }]) expect(envOf({ env })).toEqual(env)
  expect(envOf({ secrets: { TRACEPARENT: 'token' } })).toBeUndefined()
  expect(envOf({ env: 'odd' })).toBe('odd')
})

test('any input is made a request of, or refused in words, and stays as it was', () => {
  const fields = [
    'execution',
    'program',
    'args',
    'script',
    'env',
    'limits',
    'control_context',
    'task_id',
    'kind',
    '__proto__',
  ]
  const input = fc.oneof(fc.jsonValue(), fc.dictionary(fc.constantFrom(...fields), fc.jsonValue()))
  fc.assert(
    fc.property(input, fc.option(fc.string(), { nil: undefined }), (given, toolName) => {
      const before = JSON.stringify(given)
      try {
        expect(requestOf({ input: given, toolName }).body.task_id).toBe('id-1')
      } catch (error) {
        expect(error).toBeInstanceOf(ExecutionError)
        expect(error).toMatchObject({ code: 'invalid_input' })
      }
      expect(JSON.stringify(given)).toBe(before)
      ownerOf(executableTask({ input: given }), NOBODY)
    }),
  )
})

describe('a request of a tenant', () => {
  const ofAcme = (input: object) =>
    runtimeRequest(executableTask({ type: 'runtime', input }), { runtimeId: 'id-1', defaults: ADA, tenant: 'acme' })

  test.each<[given: unknown, context: object]>([
    [undefined, { owner: 'ada' }],
    [null, { owner: 'ada' }],
    [
      { owner: 'eve', labels: { a: 'b' } },
      { owner: 'eve', labels: { a: 'b' } },
    ],
    [{ tenant: 'globex', tenant_only: false }, { owner: 'ada' }],
  ])('names it, whatever the task says: %j', (control_context, context) => {
    const { body } = ofAcme({ ...ls, control_context })
    expect(body.control_context).toEqual({ ...context, tenant: 'acme', tenant_only: true })
  })

  test('names no files by their hash, which may be those of others', () => {
    const inputs = { 'a/b': { staged: 'f'.repeat(64) } }
    expect(() => ofAcme({ ...ls, inputs })).toThrow(
      'inputs."a/b".staged: a task of a tenant names files by task_id and file',
    )
    expect(requestOf({ input: { ...ls, inputs } }).body.inputs).toEqual(inputs)
  })
})

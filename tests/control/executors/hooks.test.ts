/**
 * Goal: hooks run in order and once, may change what they are allowed to, and fail an attempt in clear words.
 * Method: executors of a few lines that write down what is called, alone and through the real scheduler.
 */
import { describe, expect, test } from 'bun:test'
import {
  type ExecutableTask,
  ExecutionError,
  type Executor,
  type ExecutorHooks,
  type MethodExecutor,
} from '../../../control/executors/executor.ts'
import { runnable } from '../../../control/executors/hooks.ts'
import { executableTask, testContext } from '../../support/executor-context.ts'
import { runInProcess } from '../../support/in-process.ts'
import { memoryLog } from '../../support/memory-log.ts'

const refused = new ExecutionError('denied', 'not today')

/** Gives back its input, or throws it when it is an error. */
const echo = ({ input }: ExecutableTask) => {
  if (input instanceof Error) throw input
  return input
}

const run = (hooks: ExecutorHooks, task: Partial<ExecutableTask> = {}, context = testContext()) =>
  Promise.try(() =>
    runnable({ type: 'test', execute: async (given) => echo(given), ...hooks }).execute(executableTask(task), context),
  )

const failureOf = (answer: Promise<unknown>) => answer.then(String, (error) => error)

describe('an executor without hooks', () => {
  test('is called as it is', () => {
    const executor: Executor = { type: 'test', execute: echo }
    expect(runnable(executor)).toBe(executor)
  })

  test('answers at once if it can, with methods too', () => {
    const methods: MethodExecutor = { type: 'test', executeMethod: (method, task) => [method, task.input] }
    const task = executableTask({ toolName: 'sum', input: 7 })
    expect(runnable(methods).execute(task, testContext())).toEqual(['sum', 7])
  })
})

describe('methods', () => {
  const methods: MethodExecutor = { type: 'test', executeMethod: (method) => method }

  test.each([undefined, ''])('need a tool name, and %j is none', (toolName) => {
    const task = executableTask({ toolName })
    expect(() => runnable(methods).execute(task, testContext())).toThrow('tool_name is required for type test')
  })

  test('beside execute leave it the tasks without a tool name', () => {
    const both = runnable({ ...methods, execute: () => 'executed' } as Executor & MethodExecutor)
    expect(both.execute(executableTask(), testContext())).toBe('executed')
    expect(both.execute(executableTask({ toolName: 'a' }), testContext())).toBe('a')
  })

  test('have hooks around them', async () => {
    const hooked = runnable({ ...methods, afterExecute: (_, result) => ({ result: `${result}!` }) })
    expect(await hooked.execute(executableTask({ toolName: 'a' }), testContext())).toBe('a!')
  })

  test('and hooks may be methods of a class', async () => {
    class Counting implements MethodExecutor {
      readonly type = 'test'
      #count = 0
      beforeExecute() {
        this.#count++
      }
      executeMethod() {
        return this.#count
      }
      async afterExecute() {
        this.#count++
      }
    }
    const counting = runnable(new Counting())
    const call = () => counting.execute(executableTask({ toolName: 'a' }), testContext())
    expect([await call(), await call()]).toEqual([1, 3])
  })
})

test('an executor with hooks takes the secrets that it took without', () => {
  const checked: unknown[] = []
  const taking = runnable({
    ...{ type: 'test', execute: echo, afterExecute: () => {} },
    secretsOf: (toolName) => (toolName === 'a' ? { inFiles: true } : undefined),
    checkInput: (...given) => void checked.push(given),
  })
  expect([taking.secretsOf?.('a'), taking.secretsOf?.('b')]).toEqual([{ inFiles: true }, undefined])
  taking.checkInput?.('a', 1, { TOKEN: 'token' })
  expect(checked).toEqual([['a', 1, { TOKEN: 'token' }]])
})

describe('hooks', () => {
  test('that return nothing change nothing', async () => {
    const nothing = { beforeExecute: () => {}, afterExecute: async () => {}, onError: () => {} }
    expect(await run(nothing, { input: 7 })).toBe(7)
    expect(await failureOf(run(nothing, { input: refused }))).toBe(refused)
  })

  test('are awaited, in order, with one context', async () => {
    const calls: unknown[] = []
    const context = testContext()
    const note = async (name: string, seen: unknown) => {
      await Bun.sleep(0)
      expect(seen).toBe(context)
      calls.push(name)
    }
    const hooks: ExecutorHooks = {
      beforeExecute: (_, seen) => note('before', seen),
      afterExecute: (_, result, seen) => note(`after ${result}`, seen),
      onError: (_, error, seen) => note(`error ${(error as Error).message}`, seen),
    }
    await run(hooks, { input: 7 }, context)
    await failureOf(run(hooks, { input: refused }, context))
    expect(calls).toEqual(['before', 'after 7', 'before', 'error not today'])
  })

  test('beforeExecute may replace the input, for all that follows', async () => {
    const seen: unknown[] = []
    const given = executableTask({ id: 'x', toolName: 't', input: 1, annotations: { a: 'b' }, secrets: { A: 'a' } })
    const hooks: ExecutorHooks = {
      beforeExecute: ({ input }) => ({ input: Number(input) + 1 }),
      afterExecute: (task) => void seen.push(task),
    }
    expect(await run(hooks, given)).toBe(2)
    expect(seen).toEqual([{ ...given, input: 2 }])
    expect(given.input).toBe(1)
    expect(await run({ beforeExecute: () => ({ input: undefined }) }, given)).toBeUndefined()
  })

  test('beforeExecute may refuse: nothing else is called', async () => {
    const calls: string[] = []
    const hooks: ExecutorHooks = {
      beforeExecute: () => {
        throw refused
      },
      afterExecute: () => void calls.push('after'),
      onError: () => void calls.push('error'),
    }
    expect(await failureOf(run(hooks))).toBe(refused)
    expect(calls).toEqual([])
  })

  test('afterExecute may replace the result, or fail the attempt without onError', async () => {
    expect(await run({ afterExecute: async (_, result) => ({ result: [result] }) }, { input: 7 })).toEqual([7])
    const failing: ExecutorHooks = {
      afterExecute: () => Promise.reject(refused),
      onError: () => ({ result: 'recovered' }),
    }
    expect(await failureOf(run(failing))).toBe(refused)
  })

  test('onError may make a result of an error, or another error', async () => {
    const broken = new Error('broke')
    expect(await run({ onError: (_, error) => ({ result: String(error) }) }, { input: broken })).toBe('Error: broke')
    expect(await run({ onError: () => ({ result: undefined }) }, { input: broken })).toBeUndefined()
    const other: ExecutorHooks = {
      onError: () => {
        throw refused
      },
    }
    expect(await failureOf(run(other, { input: broken }))).toBe(refused)
    const same: ExecutorHooks = {
      onError: (_, error) => {
        throw error
      },
    }
    expect(await failureOf(run(same, { input: broken }))).toBe(broken)
  })

  test.each(['beforeExecute', 'afterExecute', 'onError'] as const)(
    'a mistake in %s is said and logged',
    async (hook) => {
      const { log, lines } = memoryLog()
      const hooks: ExecutorHooks = {
        [hook]: () => {
          throw new TypeError('x is not a function')
        },
      }
      const error = await failureOf(run(hooks, { input: hook === 'onError' ? refused : 7 }, testContext({ log })))
      expect(error).toMatchObject({ code: 'internal', message: `internal error in ${hook}: x is not a function` })
      expect(lines()).toMatchObject([
        { level: 'error', msg: 'executor broke', hook, cause: expect.stringContaining('TypeError') },
      ])
    },
  )

  test('a signal that fires during beforeExecute keeps the execution from starting, and is told to onError', async () => {
    const context = testContext()
    const seen: unknown[] = []
    const hooks: ExecutorHooks = {
      beforeExecute: () => context.abort(),
      afterExecute: () => void seen.push('after'),
      onError: (_task, error, { signal }) => void seen.push((error as ExecutionError).code, signal.aborted),
    }
    expect(await failureOf(run(hooks, { input: 7 }, context))).toMatchObject({ code: 'cancelled' })
    expect(seen).toEqual(['cancelled', true])
  })
})

describe('a task of an executor with hooks', () => {
  test('keeps its input, its result and its retries', async () => {
    const { runOne } = runInProcess([
      {
        type: 'hooked',
        beforeExecute: ({ input }) => ({ input: { doubled: Number(input) * 2 } }),
        execute: async ({ input }, { attempt }) => {
          if (attempt === 1) throw refused
          return input
        },
        onError: () => {
          throw new ExecutionError('external_failure', 'reworded', { result: 'so far' })
        },
      },
    ])
    expect(await runOne({ type: 'hooked', input: 4, retry: 1 })).toMatchObject({
      ...{ status: 'success', input: 4, result: { doubled: 8 }, attempt: 2 },
    })
    expect(await runOne({ type: 'hooked', input: 4 })).toMatchObject({
      ...{ status: 'failed', error: 'reworded', result: 'so far', runtime: { error: { code: 'external_failure' } } },
    })
  })

  test('that times out in a hook fails for that, and the hook sees the signal', async () => {
    const { runOne } = runInProcess([
      {
        type: 'slow',
        execute: () => 'done',
        afterExecute: (_task, _result, { signal }) =>
          new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve())),
      },
    ])
    expect(await runOne({ type: 'slow', timeout: 5 })).toMatchObject({
      ...{ status: 'failed', error: 'task timed out after 5ms', result: 'done' },
    })
  })
})

describe('a hook that gives or throws what no record can hold', () => {
  const throwing = () => {
    throw Object.create(null)
  }
  const failing = () => {
    throw refused
  }
  test.each<[string, ExecutorHooks, string]>([
    ['beforeExecute throws', { beforeExecute: throwing }, 'internal error in beforeExecute: a value that cannot be'],
    ['afterExecute throws', { afterExecute: throwing }, 'internal error in afterExecute: a value that cannot be'],
    ['onError throws', { beforeExecute: () => ({ input: refused }), onError: throwing }, 'internal error in onError: '],
    [
      'afterExecute gives',
      { afterExecute: () => ({ result: 1n }) },
      'internal error: the result cannot be kept as JSON',
    ],
    [
      'onError gives',
      { beforeExecute: () => ({ input: refused }), onError: () => ({ result: { n: 1n } }) },
      'internal error: the result cannot be kept as JSON: n: a BigInt is not a JSON value',
    ],
    [
      'the result of afterExecute throws',
      { afterExecute: () => Object.defineProperty({ result: 1 }, 'result', { get: failing }) },
      'not today',
    ],
  ])('%s fails its task, and the service goes on', async (_, hooks, error) => {
    const { log } = memoryLog()
    const service = runInProcess(
      [
        { type: 'test', execute: echo, ...hooks },
        { type: 'os', execute: () => 'fine' },
      ],
      log,
    )
    const task = await service.runOne({ type: 'test' })
    expect(task.status).toBe('failed')
    expect(task.error).toStartWith(error)
    expect(JSON.parse(JSON.stringify(task))).toEqual(task)
    expect(await service.runOne({ type: 'os' })).toMatchObject({ status: 'success', result: 'fine' })
  })
})

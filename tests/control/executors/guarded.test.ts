/**
 * Goal: what an executor throws or rejects with where nobody waits for it is logged and goes no further.
 * Method: executors that break in each such method, at once and later, registered as the service registers them.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { ExecutionError, type Executor, type ForgottenTask } from '../../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../../control/executors/registry.ts'
import { newFindings, reviewInputs } from '../../../control/operations/review.ts'
import { refuse } from '../../../control/rules/report.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { executableTask } from '../../support/executor-context.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { operationParts } from '../../support/operation-parts.ts'

const unhandled: unknown[] = []
const note = (error: unknown) => void unhandled.push(error)
beforeEach(() => void process.on('unhandledRejection', note))
afterEach(() => void process.off('unhandledRejection', note))

const breaks = {
  'throws at once': (): never => {
    throw new TypeError('x is not a function')
  },
  'rejects later': async (): Promise<never> => {
    await nextTurn()
    throw new TypeError('x is not a function')
  },
}
const handle = { id: 'h', isTaken: true }
const forgotten: ForgottenTask = { ...executableTask(), graph: { id: 'g' }, attempt: 1, startedAt: 0, rare: { handle } }

const call = {
  killRemote: (executor: Executor) => executor.killRemote?.(executableTask(), handle),
  forget: (executor: Executor) => executor.forget?.(forgotten),
  checkInput: (executor: Executor) => executor.checkInput?.(undefined, 7),
  parametersOf: (executor: Executor) => executor.parametersOf?.(undefined),
  knownResult: (executor: Executor) => executor.knownResult?.(executableTask()),
}

describe.each(Object.entries(breaks))('a method that %s', (_, broken) => {
  test.each(Object.entries(call))('as %s', async (method, use) => {
    const { log, lines } = memoryLog()
    const executor = { type: 'test', execute: () => 1, [method]: broken } as unknown as Executor
    const registry = new ExecutorRegistry([executor], log)
    const answer: unknown = use(registry.get('test')!)
    await nextTurn()
    await nextTurn()
    expect(unhandled).toEqual([])
    expect(answer instanceof Promise ? undefined : answer).toBeUndefined()
    expect(lines()).toMatchObject([
      { level: 'error', msg: 'executor broke', type: 'test', in: method, cause: expect.stringContaining('TypeError') },
    ])
  })

  test('as a review refuses no task, and is logged once', async () => {
    const { log, lines } = memoryLog()
    const executor = { type: 'test', execute: () => 1, parametersOf: broken, checkInput: broken } as unknown as Executor
    const executors = new ExecutorRegistry([executor], log)
    const parts = operationParts({ executors })
    const findings = newFindings(parts, refuse)
    const tasks = Array.from({ length: 5 }, () => executableTask({ type: 'test', input: {} }))
    reviewInputs(parts, tasks, findings, 0, tasks.length)
    await nextTurn()
    await nextTurn()
    expect({ warnings: findings.warnings, unhandled }).toEqual({ warnings: [], unhandled: [] })
    expect(lines().map((line) => line.in)).toEqual(['parametersOf', 'checkInput'])
  })
})

test('what an executor says of an input is passed on, and its methods keep their fields', () => {
  class Picky implements Executor {
    readonly type = 'test'
    #checked = 0
    execute() {
      return this.#checked
    }
    checkInput() {
      this.#checked++
      throw new ExecutionError('invalid_input', 'not this')
    }
  }
  const executor = new ExecutorRegistry([new Picky()]).get('test')!
  expect(() => executor.checkInput?.(undefined, 7)).toThrow('not this')
  expect(executor.execute(executableTask(), undefined as never)).toBe(1)
})

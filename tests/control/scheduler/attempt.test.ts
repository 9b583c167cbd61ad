/**
 * Goal: one attempt has exactly one outcome, and the first reason to stop it wins.
 * Method: executors of a few lines that answer, fail, hang or do not listen; the real clock where a limit is the subject.
 */
import { describe, expect, test } from 'bun:test'
import {
  ExecutionError,
  type Executor,
  type ExecutorContext,
  type StopReason,
  throwIfStopped,
} from '../../../control/executors/executor.ts'
import type { Purpose } from '../../../control/log/keeper.ts'
import { Attempt, type AttemptHost, KILL_RETRY_MS } from '../../../control/scheduler/attempt.ts'
import type { Task } from '../../../control/task/graph.ts'
import type { TaskInput } from '../../../shared/contract/submission.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { taskOf } from '../../support/graph.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { until } from '../../support/until.ts'

type Execute = (context: ExecutorContext) => unknown

const executorOf = (execute: Execute): Executor => ({ type: 'test', execute: (_, context) => execute(context) })

const HOST: AttemptHost = {
  log: silentLog(),
  abandonAfterMs: 60_000,
  serviceId: 'test',
  isTracing: false,
  keeper: { kept: () => undefined },
  resolveInput: async ({ input }) => input,
  startedProcess: () => {},
  handedOver: () => {},
  progress: () => {},
  waits: () => {},
  works: () => {},
  standBy: () => {},
  resume: async () => {},
}

function attemptOf(execute: Execute, task: TaskInput = {}, host: Partial<AttemptHost> = {}): Attempt {
  const started = taskOf(task)
  started.attempt = 1
  return new Attempt(started, executorOf(execute), { ...HOST, ...host })
}

/** Resolves when a timer of so many milliseconds fires. Timers fire in the order in which they are due. */
const timerOf = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Lasts until it is told to stop, then does `what`. */
const untilStopped =
  (what: (reason: unknown) => unknown = () => undefined): Execute =>
  ({ signal }) =>
    new Promise((resolve, reject) => {
      const end = async () => what(signal.reason)
      const stop = () => end().then(resolve, reject)
      if (signal.aborted) stop()
      else signal.addEventListener('abort', stop)
    })

const broken = new ExecutionError('exit_nonzero', 'command failed: exit status 3', {
  result: { exit_code: 3 },
  details: { signal: null },
})

const brokenOutcome = {
  kind: 'failure',
  failure: { code: 'exit_nonzero', message: 'command failed: exit status 3', details: { signal: null } },
  result: { exit_code: 3 },
} as const

const thrower = (message: string) => () => {
  throw new Error(message)
}

const nested = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value]
  return value
}

const shared = (levels: number): unknown => {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value, value]
  return value
}

const cycle = (): unknown => {
  const loop: Record<string, unknown> = {}
  loop.loop = loop
  return loop
}

describe('an attempt', () => {
  test('that is answered at once has its outcome at once', () => {
    expect(attemptOf(() => ({ ok: true })).run()).toEqual({ kind: 'success', result: { ok: true } })
    const failing = attemptOf(() => {
      throw broken
    })
    expect(failing.run()).toEqual(brokenOutcome)
  })

  /** Values that break or hang whoever writes them as JSON. */
  const UNKEPT: [string, () => unknown, string][] = [
    ['a BigInt', () => ({ count: 10n }), 'count: a BigInt is not a JSON value'],
    ['a toJSON that throws', () => ({ at: { toJSON: thrower('no') } }), 'at: reading it throws: no'],
    [
      'a getter that throws',
      () => Object.defineProperty({}, 'a', { enumerable: true, get: thrower('no') }),
      'a: reading it throws: no',
    ],
    ['a cycle', cycle, 'nested deeper than 210 levels'],
    ['100,000 levels', () => nested(100_000), 'nested deeper than 210 levels'],
    ['41 levels of shared references', () => shared(41), 'values'],
    ['a text that is too long', () => ['x'.repeat(64 * 1024 * 1024), 'x'], 'characters'],
  ]

  test.each(UNKEPT)('whose values hold %s fails, and says which part and why', async (_, make, why) => {
    const expectBroken = (outcome: unknown, part: string) => {
      const { message, ...failure } = (outcome as { failure: { code: string; message: string } }).failure
      expect(outcome).toStrictEqual({ kind: 'failure', failure: { code: 'internal', message } })
      expect(failure).toEqual({ code: 'internal' })
      expect(message).toStartWith(`internal error: the ${part} cannot be kept as JSON: `)
      expect(message).toContain(why)
      expect(message.length).toBeLessThan(1_000)
    }
    expectBroken(attemptOf(make).run(), 'result')
    expectBroken(await attemptOf(async () => make()).run(), 'result')
    for (const part of ['result', 'details']) {
      const fail = () => {
        throw new ExecutionError('exit_nonzero', 'exit status 3', { [part]: make() })
      }
      for (const outcome of [attemptOf(fail).run(), await attemptOf(async () => fail()).run()]) {
        expectBroken(outcome, part)
        expect(JSON.stringify(outcome)).toContain('(the attempt failed: exit status 3)')
      }
    }
    const reports: unknown[] = []
    const report: Execute = (context) => context.progress('half', make())
    const reporting = attemptOf(report, {}, { progress: (...entry) => void reports.push(entry) })
    expectBroken(reporting.run(), 'data of a progress entry')
    expect(reports).toEqual([])
  })

  test('that was stopped drops a result that cannot be kept', async () => {
    const attempt = attemptOf(untilStopped(() => ({ count: 1n })))
    const outcome = attempt.run()
    attempt.stop('cancelled')
    expect(await outcome).toStrictEqual({ kind: 'stopped' })
  })

  test.each<[string, () => unknown]>([
    ['an error without text', () => Object.create(null)],
    ['an error whose message throws', () => Object.defineProperty(new Error(), 'message', { get: thrower('no') })],
    ['an error whose stack throws', () => Object.defineProperty(new Error('x'), 'stack', { get: thrower('no') })],
    ['a proxy that refuses all', () => new Proxy({}, { get: thrower('no'), getPrototypeOf: thrower('no') })],
    [
      'an execution error whose details throw',
      () => Object.defineProperty(new ExecutionError('denied', 'x'), 'details', { get: thrower('no') }),
    ],
  ])('in which an executor throws %s fails', async (_, make) => {
    const fail = () => {
      throw make()
    }
    const { log } = memoryLog()
    for (const execute of [fail, async () => fail()]) {
      const outcome = await attemptOf(execute, {}, { log }).run()
      expect(outcome).toMatchObject({ kind: 'failure', failure: { code: 'internal' } })
      expect(JSON.parse(JSON.stringify(outcome))).toEqual(outcome)
    }
  })

  test('has a code that is known and a message that is short, whatever was thrown', () => {
    const thrown = new ExecutionError(7n as never, 'x'.repeat(10_000_000), {
      retryable: 1n as never,
      source: 2n as never,
    })
    const outcome = attemptOf(() => {
      throw thrown
    }).run() as { failure: { code: string; message: string } }
    expect(outcome.failure.code).toBe('unknown')
    expect(outcome.failure.message.length).toBeLessThan(70_000)
    expect(Object.keys(outcome.failure)).toEqual(['code', 'message'])
  })

  test('whose executor reports what is no report fails at its end', () => {
    const seen: unknown[] = []
    const host = { progress: () => void seen.push('progress'), handedOver: () => void seen.push('handed over') }
    const reports: Execute[] = [
      (context) => context.progress(1n as never),
      (context) => context.handOver({ id: 1n as never, isTaken: false }),
      (context) => context.startedProcess('1/../2' as never),
    ]
    for (const report of reports) {
      const outcome = attemptOf(report, {}, host).run()
      expect(outcome).toMatchObject({ kind: 'failure', failure: { code: 'internal' } })
    }
    expect(seen).toEqual([])
  })

  test('whose promise has a then of its own that throws fails', async () => {
    const odd = Promise.resolve(1)
    Object.defineProperty(odd, 'then', { value: thrower('no then') })
    const failure = { code: 'internal', message: 'internal error: no then' } as const
    expect(await attemptOf(() => odd).run()).toEqual({ kind: 'failure', failure })
  })

  test('that is answered later has the same outcomes later', async () => {
    expect(await attemptOf(async () => ({ ok: true })).run()).toEqual({ kind: 'success', result: { ok: true } })
    expect(await attemptOf(() => Promise.reject(broken)).run()).toEqual(brokenOutcome)
  })

  test('keeps whatever its executor answers, nothing being null', () => {
    for (const result of [0, '', false, [], null])
      expect(attemptOf(() => result).run()).toEqual({ kind: 'success', result })
    expect(attemptOf(() => undefined).run()).toEqual({ kind: 'success', result: null })
  })

  test('that fails without details or a result has none', () => {
    const outcome = attemptOf(() => {
      throw new ExecutionError('denied', 'no')
    }).run()
    expect(outcome).toStrictEqual({ kind: 'failure', failure: { code: 'denied', message: 'no' } })
  })

  test.each([
    ['an error', () => new TypeError('x is not a function'), 'internal error: x is not a function'],
    ['a text', () => 'just words', 'internal error: just words'],
    ['nothing', () => undefined, 'internal error: undefined'],
  ])('in which an executor throws %s is a mistake of ours, and is logged', async (_, thrown, message) => {
    for (const isLate of [false, true]) {
      const { log, lines } = memoryLog()
      const execute = () => {
        if (isLate) return Promise.reject(thrown())
        throw thrown()
      }
      const outcome = await attemptOf(execute, {}, { log }).run()
      expect(outcome).toEqual({ kind: 'failure', failure: { code: 'internal', message } })
      expect(lines()).toMatchObject([{ level: 'error', msg: 'executor broke', task_id: 'task', attempt: 1 }])
    }
  })

  test('tells its executor number, trace id, and lets it log and report', () => {
    const { log, lines } = memoryLog()
    const reports: unknown[] = []
    const seen: unknown[] = []
    const execute: Execute = (context) => {
      seen.push(context.attempt, context.traceId)
      context.log.info('half way')
      context.progress('half', { percent: 50 })
      context.progress()
    }
    const attempt = attemptOf(execute, {}, { log, progress: (_task, _attempt, ...report) => void reports.push(report) })
    attempt.run()
    expect(seen).toEqual([1, attempt.traceId])
    expect(lines()).toMatchObject([{ msg: 'half way', trace_id: attempt.traceId, task_id: 'task', attempt: 1 }])
    expect(reports).toEqual([
      ['half', { percent: 50 }],
      [undefined, undefined],
    ])
  })
})

describe('a timeout', () => {
  const late = { code: 'timeout', message: 'task timed out after 5ms', retryable: true } as const

  test('stops the attempt, which fails once its executor has returned', async () => {
    let isStopped = false
    const execute = untilStopped(async (reason) => {
      expect(reason).toBe('timeout')
      for (let turn = 0; turn < 5; turn++) await nextTurn()
      isStopped = true
    })
    expect(await attemptOf(execute, { timeout: 5 }).run()).toEqual({ kind: 'failure', failure: late })
    expect(isStopped).toBe(true)
  })

  test('keeps what the executor still has to say, but not its word on how it went', async () => {
    const succeeding = untilStopped(() => ({ partial: true }))
    const expected = { kind: 'failure', failure: late, result: { partial: true } } as const
    expect(await attemptOf(succeeding, { timeout: 5 }).run()).toEqual(expected)
    const failing = untilStopped(() => {
      throw new ExecutionError('exit_nonzero', 'terminated', { result: { partial: true } })
    })
    expect(await attemptOf(failing, { timeout: 5 }).run()).toEqual(expected)
    const breaking = untilStopped(() => {
      throw new Error('broke when told to stop')
    })
    expect(await attemptOf(breaking, { timeout: 5 }).run()).toEqual({ kind: 'failure', failure: late })
  })

  test.each([0, -1, -(2 ** 40), 2 ** 31, 2 ** 40])(
    'of %d milliseconds does not stop an attempt now',
    async (timeout) => {
      const attempt = attemptOf(untilStopped(), { timeout })
      const outcome = attempt.run()
      // Were there a timer that is due at once, it would fire before one that is set after it and is due later.
      await timerOf(2)
      attempt.stop('cancelled')
      expect(await outcome).toEqual({ kind: 'stopped' })
    },
  )

  test('has no say in an attempt that ended in time', async () => {
    const { log, lines } = memoryLog()
    const attempt = attemptOf(async () => 'in time', { timeout: 1 }, { log, abandonAfterMs: 0 })
    expect(await attempt.run()).toEqual({ kind: 'success', result: 'in time' })
    await timerOf(2) // set after that of the timeout and due later: it fires after it would have
    expect(attempt.signal.aborted).toBe(false)
    expect(lines()).toEqual([])
  })
})

describe('an attempt of an earlier run that has used up its timeout', () => {
  const late = (execute: Execute) => {
    const task = taskOf({ timeout: 100 })
    task.attempt = 1
    task.attemptStartedAt = Date.now() - 1_000
    task.setRare('handle', { id: 'there', isTaken: true })
    return new Attempt(task, executorOf(execute), HOST)
  }
  const afterAWhile = async (end: () => unknown) => {
    for (let turn = 0; turn < 10; turn++) await nextTurn()
    return end()
  }

  test('is asked how it ended before it is stopped', async () => {
    expect(await late(() => afterAWhile(() => 'well')).run()).toEqual({ kind: 'success', result: 'well' })
    const failing = late(() =>
      afterAWhile(() => {
        throw broken
      }),
    )
    expect(await failing.run()).toEqual(brokenOutcome)
  })

  test('is stopped when it has not ended, and when nobody can say', async () => {
    const stopped = { kind: 'failure', failure: { code: 'timeout' }, result: 'timeout' }
    let unknown: unknown
    const running = late(async (context) => {
      await nextTurn()
      context.goesOn()
      unknown = late(untilStopped((reason) => reason)).run()
      expect(await Promise.race([unknown, untilStopped(() => 'stopped')(context)])).toBe('stopped')
      return context.signal.reason
    })
    expect(await running.run()).toMatchObject(stopped)
    expect(await unknown).toMatchObject(stopped)
  })

  test('that is cancelled is not stopped for it any more', async () => {
    const attempt = late(untilStopped(() => afterAWhile(() => 'ended')))
    const ending = attempt.run()
    attempt.stop('cancelled')
    attempt.goesOn()
    expect(await ending).toEqual({ kind: 'stopped', result: 'ended' })
    expect(attempt.signal.reason).toBe('cancelled')
  })

  test('was ended for it when it was ended: nobody else does that', async () => {
    const cancelled = new ExecutionError('cancelled', 'task was cancelled', { result: 'partial' })
    const ended = late(() =>
      afterAWhile(() => {
        throw cancelled
      }),
    )
    expect(await ended.run()).toEqual({
      kind: 'failure',
      failure: { code: 'timeout', message: 'task timed out after 100ms', retryable: true },
      result: 'partial',
    })
    const byOthers = attemptOf(() => Promise.reject(cancelled), { timeout: 60_000 })
    expect(await byOthers.run()).toMatchObject({ failure: { code: 'cancelled' } })
  })
})

describe('a stop', () => {
  test('counts for its first reason, whatever comes after it', async () => {
    const reasons: StopReason[] = ['cancelled', 'interrupted', 'timeout']
    for (const first of reasons) {
      const attempt = attemptOf(untilStopped(), { timeout: 60_000 })
      const ending = attempt.run()
      attempt.stop(first)
      for (const later of reasons) attempt.stop(later)
      const { kind } = await ending
      expect(kind).toBe(first === 'timeout' ? 'failure' : 'stopped')
      expect(attempt.signal.reason).toBe(first)
    }
  })

  test('is seen by an executor that asks for its signal only afterwards', async () => {
    const execute: Execute = async (context) => {
      await nextTurn()
      expect(context.signal.aborted).toBe(true)
      return context.signal.reason
    }
    const attempt = attemptOf(execute)
    const ending = attempt.run()
    attempt.stop('cancelled')
    expect(await ending).toEqual({ kind: 'stopped', result: 'cancelled' })
  })

  test('gives up an executor that does not return, and says so', async () => {
    const { log, lines } = memoryLog()
    const attempt = attemptOf(() => new Promise(() => {}), {}, { log, abandonAfterMs: 1 })
    const ending = attempt.run()
    attempt.stop('interrupted')
    expect(await ending).toEqual({ kind: 'stopped' })
    expect(lines()).toMatchObject([
      { level: 'error', msg: 'executor did not stop when told to: its attempt is given up', task_id: 'task' },
    ])
  })

  test('does not give up an executor that returned in time', async () => {
    const { log, lines } = memoryLog()
    const attempt = attemptOf(untilStopped(), {}, { log, abandonAfterMs: 1 })
    const ending = attempt.run()
    attempt.stop('interrupted')
    await ending
    await timerOf(2) // set after that of the giving up and due later: it fires after it would have
    expect(lines()).toEqual([])
  })
})

describe('a start that takes time to keep', () => {
  const acting = (acts: string[]): Execute => {
    return async (context) => {
      await context.begin()
      throwIfStopped(context, 'it does not act any more')
      acts.push('acted')
    }
  }

  test('is waited for before the attempt acts', async () => {
    const acts: string[] = []
    const kept = Promise.withResolvers<void>()
    const attempt = attemptOf(acting(acts), {}, { keeper: { kept: () => kept.promise } })
    const outcome = attempt.run()
    await nextTurn()
    expect([acts, attempt.hasBegun]).toEqual([[], false])
    kept.resolve()
    expect(await outcome).toEqual({ kind: 'success', result: null })
    expect([acts, attempt.hasBegun]).toEqual([['acted'], true])
  })

  test('and is refused leaves an attempt that did nothing', async () => {
    const acts: string[] = []
    const refusal = { keeper: { kept: () => Promise.reject(new Error('away')) } }
    const attempt = attemptOf(acting(acts), {}, refusal)
    expect(await attempt.run()).toEqual({ kind: 'unrecorded' })
    expect([acts, attempt.hasBegun]).toEqual([[], false])
  })

  test('is of no use to an attempt that is stopped meanwhile', async () => {
    const acts: string[] = []
    const kept = Promise.withResolvers<void>()
    const attempt = attemptOf(acting(acts), {}, { keeper: { kept: () => kept.promise } })
    const outcome = attempt.run()
    attempt.stop('cancelled')
    kept.resolve()
    expect(await outcome).toMatchObject({ kind: 'stopped' })
    expect(acts).toEqual([])
  })
})

describe('a timeout of an attempt that another service may have', () => {
  test('kills it once it is known to be ours', async () => {
    const asked: PromiseWithResolvers<void>[] = []
    const kept = (purpose: Purpose) => {
      if (purpose !== 'kill') return undefined
      const answer = Promise.withResolvers<void>()
      asked.push(answer)
      return answer.promise
    }
    const attempt = attemptOf(untilStopped(), { timeout: 1 }, { keeper: { kept } })
    const outcome = attempt.run()
    await until(() => asked.length, 1)
    await timerOf(20)
    expect(attempt.signal.aborted).toBe(false)
    asked[0]!.reject(new Error('away')) // it is asked again
    await until(() => asked.length, 2)
    expect(attempt.signal.aborted).toBe(false)
    asked[1]!.resolve()
    expect(await outcome).toMatchObject({ kind: 'failure', failure: { code: 'timeout' } })
  })

  /** An attempt whose work does not start in time, while nobody can tell whether it is ours. */
  function lateAttempt(task: TaskInput = {}) {
    const asked: PromiseWithResolvers<void>[] = []
    const waits: Task[] = []
    const kept = (purpose: Purpose) => {
      if (purpose !== 'kill') return undefined
      const answer = Promise.withResolvers<void>()
      asked.push(answer)
      return answer.promise
    }
    const host = { ...HOST, keeper: { kept }, waits: (waiting: Task) => waits.push(waiting) }
    const executor = { ...executorOf(untilStopped()), startsLater: true }
    const attempt = new Attempt(taskOf({ queue_timeout: 1, ...task }), executor, host)
    attempt.task.attempt = 1
    attempt.task.attemptStartedAt = Date.now()
    const outcome = attempt.run()
    attempt.waitedTooLong()
    return { attempt, outcome, asked, waits }
  }

  const STARTS: [string, (attempt: Attempt) => void][] = [
    ['starts', (attempt) => attempt.works(Date.now())],
    ['goes on', (attempt) => attempt.goesOn()],
  ]

  test.each(STARTS)('because of its wait kills no work that %s before the answer', async (_, start) => {
    const { attempt, outcome, asked } = lateAttempt()
    start(attempt)
    asked[0]!.resolve()
    await nextTurn()
    expect(attempt.signal.aborted).toBe(false)
    attempt.stop('cancelled')
    expect(await outcome).toMatchObject({ kind: 'stopped' })
  })

  test.each(STARTS)('because of its wait is not tried again once the work %s', async (_, start) => {
    const { attempt, outcome, asked } = lateAttempt()
    asked[0]!.reject(new Error('away'))
    await nextTurn()
    start(attempt)
    await timerOf(KILL_RETRY_MS + 50)
    expect([asked.length, attempt.signal.aborted]).toEqual([1, false])
    attempt.stop('cancelled')
    expect(await outcome).toMatchObject({ kind: 'stopped' })
  })

  test.each(STARTS)('of work that %s late has its own text', async (_, start) => {
    const { attempt, outcome, asked } = lateAttempt({ timeout: 50 })
    start(attempt)
    asked[0]!.reject(new Error('away'))
    await until(() => asked.length, 2)
    asked[1]!.resolve()
    expect(await outcome).toMatchObject({ failure: { message: 'task timed out after 50ms' } })
  })

  test('because of its wait is tried again, whatever the attempt waits for next', async () => {
    const { attempt, outcome, asked, waits } = lateAttempt()
    asked[0]!.reject(new Error('away'))
    await nextTurn()
    attempt.waits()
    await until(() => asked.length, 2)
    asked[1]!.resolve()
    expect(await outcome).toMatchObject({ failure: { message: 'task waited longer than queue_timeout' } })
    expect(waits).toEqual([])
  })

  test('does not count once the outcome is certain', async () => {
    const asked = Promise.withResolvers<void>()
    const ended = Promise.withResolvers<string>()
    let hasAsked = false
    const kept = (purpose: Purpose) => {
      if (purpose !== 'kill') return undefined
      hasAsked = true
      return asked.promise
    }
    const attempt = attemptOf(() => ended.promise, { timeout: 1 }, { keeper: { kept } })
    const outcome = attempt.run()
    await until(() => hasAsked)
    attempt.settled()
    asked.resolve()
    await nextTurn()
    ended.resolve('done')
    expect(await outcome).toEqual({ kind: 'success', result: 'done' })
  })
})

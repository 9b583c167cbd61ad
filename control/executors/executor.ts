/**
 * What runs a task of one type.
 *
 * An executor gets a task and a context and returns the result, now or later, or throws. It owns what it starts: when
 * `context.signal` fires it ends all of it before it returns or throws; the scheduler knows why the signal fired and
 * words the failure. An executor that can answer at once may return a plain value, which costs nothing.
 */
import type { TObject } from '@sinclair/typebox'
import type { ErrorCode } from '../../shared/contract/control.ts'
import type { Log } from '../../shared/log.ts'
import type { Handle } from '../graph/cold-fields.ts'

/** Why an attempt is stopped from outside. `interrupted`: the service stops. */
export type StopReason = 'timeout' | 'cancelled' | 'interrupted'

/** What an executor may know of a task. */
export interface ExecutableTask {
  readonly id: string
  readonly type: string
  readonly toolName: string | undefined
  /** The effective parameters, as the caller gave them; not checked by anybody yet. */
  readonly input: unknown
  /** Milliseconds for an attempt; undefined, 0 and negative mean no timeout. The scheduler sees to it. */
  readonly timeout: number | undefined
  readonly annotations: Readonly<Record<string, string>> | undefined
}

export interface ExecutorContext {
  /** Fires once, at timeout, cancel or shutdown; its reason is a `StopReason`. */
  readonly signal: AbortSignal
  readonly graphId: string
  /** 1-based. */
  readonly attempt: number
  readonly traceId: string
  /** Its lines carry the trace id, task id and attempt. */
  readonly log: Log
  /** Names this attempt among all of this service's; in the environment of its processes as TASKMILL_ATTEMPT. */
  readonly attemptId: string
  /** To be called before the attempt does anything that others can see: its number is on record from then on. */
  begin(): void
  /**
   * What an earlier run of the service handed this attempt over as: it goes on with it, under its own number. Undefined
   * for one that begins here.
   */
  readonly handle: Handle | undefined
  /**
   * Notes that another service carries the attempt out: before `begin`, under the name that it will be told, and again
   * once it has said that it has it. Such an attempt goes on when this service stops. Undefined: it does not have it.
   */
  handOver(handle: Handle | undefined): void
  /** To be called when an attempt of an earlier run was found not to have ended: its timeout counts again from then on. */
  goesOn(): void
  /** Puts a process of the attempt on record, so that it can be ended should the service be killed. */
  startedProcess(pid: number): void
  /** To be called when the outcome is settled but cleaning up goes on: the timeout does not count any more. */
  settled(): void
  /** Adds an entry to the task's `progress`. */
  progress(message?: string, data?: unknown): void
}

/** What a hook answers, now or later: something to use instead, or nothing to leave it as it is. */
// biome-ignore lint/suspicious/noConfusingVoidType: a hook that only looks has no return
type Instead<T> = T | void | Promise<T | void>

/**
 * What may happen around an execution. All of them are optional, are awaited, and get the same context: what was said
 * about its signal holds for them too. What a hook throws fails the attempt, as if the execution had thrown it.
 *
 * An attempt whose `beforeExecute` did not throw gets exactly one of `afterExecute` and `onError`, also when its signal
 * has fired. So what the first one takes, the other two can give back.
 */
export interface ExecutorHooks {
  /** Refuses the task by throwing, or gives the execution another input. Nothing of the attempt has happened yet. */
  beforeExecute?(task: ExecutableTask, context: ExecutorContext): Instead<{ readonly input: unknown }>
  /** Gives the attempt another result than its execution. */
  afterExecute?(task: ExecutableTask, result: unknown, context: ExecutorContext): Instead<{ readonly result: unknown }>
  /** Throws another error than the execution did, or makes a result of it. Otherwise the error stands. */
  onError?(task: ExecutableTask, error: unknown, context: ExecutorContext): Instead<{ readonly result: unknown }>
}

/** An ended task whose record was deleted, replaced or retired. */
export interface ForgottenTask extends ExecutableTask {
  readonly graph: { readonly id: string }
  /** The number of the last attempt; 0 for a task that never started. */
  readonly attempt: number
  /** Of the last attempt. Undefined when the other service does not have it. */
  readonly handle: Handle | undefined
}

/** Extra methods of executors that delegate to a remote service. */
export interface HandingOver {
  /** It bounds by itself how long it takes to return once the signal has fired: it is not given up before. */
  readonly boundsItsStop?: boolean
  /** Ends, now or as soon as it can, an attempt that was handed over and that nobody waits for. Must not throw. */
  killRemote?(task: ExecutableTask, handle: Handle): void
  /**
   * What the result of an attempt that still runs would be now, as far as it has come. Throws `ExecutionError` when the other
   * service does not say.
   */
  resultSoFar?(handle: Handle, call: { readonly traceId: string; readonly signal: AbortSignal }): Promise<unknown>
  /** Has the other service remove, now or as soon as it can, what it keeps of an ended task. Must not throw. */
  forget?(task: ForgottenTask): void
}

/** The parameters of a tool. */
export interface ToolParameters {
  /** The tool as error texts call it: `os.sleep`. */
  readonly label: string
  /** Names of parameters that it does not have are refused at submission. */
  readonly schema: TObject
}

/**
 * What an executor can tell of an input before it runs. Both methods are optional, answer at once and are cheap: they are
 * asked about every task that is submitted, and never about a task that was read from disk.
 */
export interface InputReview {
  /** The parameters of a tool; undefined where any name may stand. */
  parametersOf?(toolName: string | undefined): ToolParameters | undefined
  /** Throws the `ExecutionError` with which every attempt would fail. The task is accepted, and its answer warns. */
  checkInput?(toolName: string | undefined, input: unknown): void
}

/** Executes tasks of one type. */
export interface Executor extends ExecutorHooks, HandingOver, InputReview {
  /** The value of `type` that brings tasks here. */
  readonly type: string
  /** The JSON result. Throws `ExecutionError`; anything else thrown counts as a mistake of ours (`internal`). */
  execute(task: ExecutableTask, context: ExecutorContext): unknown
}

/** Executes tasks of one type that has several tools. One with an `execute` too gets tasks without a tool name there. */
export interface MethodExecutor extends ExecutorHooks, HandingOver, InputReview {
  readonly type: string
  /** Like `execute`. `method` is the task's tool name; throws `invalid_input` for one that it does not know. */
  executeMethod(method: string, task: ExecutableTask, context: ExecutorContext): unknown
}

/** The attempt failed. `message` becomes the task's `error`, `result` is kept with it. */
export class ExecutionError extends Error {
  override name = 'ExecutionError'
  readonly result: unknown
  readonly details: unknown
  /** Another attempt may well succeed; undefined where nobody can say. */
  readonly retryable: boolean | undefined
  /** The service that the failure comes from, where it is not this one. */
  readonly source: string | undefined
  /** The end of the attempt's output; undefined where the texts of `result` end with it. */
  readonly tail: string | undefined
  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ErrorOptions & {
      readonly result?: unknown
      readonly details?: unknown
      readonly retryable?: boolean | undefined
      readonly source?: string
      readonly tail?: string | undefined
    } = {},
  ) {
    super(message, options)
    this.result = options.result
    this.details = options.details
    this.retryable = options.retryable
    this.source = options.source
    this.tail = options.tail
  }
}

/** Bad or missing parameters. */
export const invalidInput = (message: string) => new ExecutionError('invalid_input', message)

/**
 * What runs a task of one type.
 *
 * An executor gets a task and a context. It returns the result, directly or as a promise, or throws. It owns what it
 * starts: when `context.signal` aborts, it ends everything before it returns or throws. The scheduler knows why the
 * signal aborted and words the failure. An executor that returns a plain value costs no promise.
 */
import type { TObject } from '@sinclair/typebox'
import type { AttemptRecord } from '../../shared/contract/control.ts'
import type { ErrorCode } from '../../shared/contract/error-codes.ts'
import type { TaskPlan } from '../../shared/contract/graph-dry-run.ts'
import type { TaskNetwork } from '../../shared/contract/task-network.ts'
import type { SecretAsker } from '../../shared/files/secret-rules.ts'
import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import type { OpenLog } from '../../shared/logs/log.ts'
import type { TraceHeaders } from '../../shared/logs/trace.ts'
import type { SecretNames } from '../../shared/request/secrets.ts'
import type { BoundedOutput } from '../../shared/streams/bounded-output.ts'
import type { Handle } from '../task/rare-state.ts'

/** Why an attempt is stopped from outside. `interrupted`: the service stops. */
export type StopReason = 'timeout' | 'cancelled' | 'interrupted'

/** The streams of a running attempt, under the names that they have in its result: `stdout`, `stderr`, `output`. */
export type OutputSoFar = Readonly<Record<string, BoundedOutput>>

/** The fields of a task that executors may use. */
export interface ExecutableTask {
  readonly id: string
  readonly type: string
  readonly toolName: string | undefined
  /** The effective parameters, as submitted and unchecked. `InputWithSecrets` for tools that send secrets. */
  readonly input: unknown
  /** Milliseconds for an attempt. Undefined, 0 and negative mean no timeout. The scheduler enforces it. */
  readonly timeout: number | undefined
  /** From -100 to 100. Higher ones start first. Absent: 0. */
  readonly priority?: number
  readonly annotations: Readonly<Record<string, string>> | undefined
  /** Names of the secrets that it gets. Only tools that take secrets have tasks with some (`secretsOf`). */
  readonly secrets?: SecretNames | undefined
}

export interface ExecutorContext {
  /** Aborts once, on timeout, cancel or shutdown. Its reason is a `StopReason`. */
  readonly signal: AbortSignal
  readonly graphId: string
  /** Whose graph it is. Undefined for the graph of a token without a tenant. */
  readonly tenant?: string | undefined
  /** 1-based. */
  readonly attempt: number
  readonly traceId: string
  /** What to hand on to services and programs that trace, too. Undefined if there is no trace. */
  readonly trace: TraceHeaders | undefined
  /** A log whose lines carry the trace id, task id and attempt. */
  readonly log: OpenLog
  /** Unique name of this attempt within the service. Its processes have it in their environment as TASKMILL_ATTEMPT. */
  readonly attemptId: string
  /**
   * Call it before the first visible effect, and wait for the promise if it returns one. From then on the attempt
   * number is kept. If it throws or rejects, the attempt must have no effect.
   */
  begin(): Promise<void> | undefined
  /**
   * The handle that this attempt recorded with `handOver` before the service restarted: follow it. The attempt keeps
   * its number. Undefined for an attempt that starts now.
   */
  readonly handle: Handle | undefined
  /**
   * Records that a remote service runs the attempt. Call it before `begin`, with the id that the request will carry,
   * and again once the remote service has accepted it. Such an attempt continues when this service stops. Undefined
   * records that the remote service does not have the attempt.
   */
  handOver(handle: Handle | undefined): void
  /** Call it if an attempt from before a restart is still running. Its timeout counts again from then on. */
  goesOn(): void
  /** Whether it matters when the work starts: the task has a timeout, or a bound of its wait. */
  readonly isTimed: boolean
  /** Call it when the attempt of an executor that `startsLater` waits, again or since a restart. */
  waits(): void
  /** Call it when the work has started. `startedAt`: when, in milliseconds since 1970. The timeout counts from then on. */
  works(startedAt: number): void
  /** Records a process of the attempt. If the service is killed, its next start ends the process. */
  startedProcess(pid: number): void
  /** Offers the output of the attempt to readers while the attempt executes. The last call counts. */
  showOutput(output: OutputSoFar): void
  /**
   * Call it before a long wait for something outside of this service: another attempt may have the slot meanwhile. The
   * result resolves once this attempt has one again; wait for it before you go on.
   */
  standBy(): () => Promise<void>
  /** Call it when the outcome is certain and only cleanup remains. The timeout no longer applies. */
  settled(): void
  /** Adds an entry to the task's `progress`. */
  progress(message?: string, data?: unknown): void
}

/**
 * The return value of a hook, directly or as a promise. Undefined changes nothing; any other value is a replacement.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: a hook that only observes returns nothing
type Instead<T> = T | void | Promise<T | void>

/**
 * Hooks around an execution. All are optional, are awaited, and get the same context, whose signal they must respect.
 * An error that a hook throws fails the attempt, as if the execution had thrown it.
 *
 * If `beforeExecute` did not throw, exactly one of `afterExecute` and `onError` runs, even if the signal has aborted.
 * So they can release what `beforeExecute` acquired.
 */
export interface ExecutorHooks {
  /** Throws to refuse the task, or returns a replacement of the input. Runs before the execution. */
  beforeExecute?(task: ExecutableTask, context: ExecutorContext): Instead<{ readonly input: unknown }>
  /** Returns a replacement of the result, or throws to fail the attempt. */
  afterExecute?(task: ExecutableTask, result: unknown, context: ExecutorContext): Instead<{ readonly result: unknown }>
  /** Throws a replacement of the error, or returns a result to succeed. Otherwise the error stands. */
  onError?(task: ExecutableTask, error: unknown, context: ExecutorContext): Instead<{ readonly result: unknown }>
}

/** A task whose attempts were tasks of a remote service. */
export interface DelegatedTask {
  readonly id: string
  readonly graph: { readonly id: string }
  /** The number of the last attempt; 0 for a task that never started. */
  readonly attempt: number
  readonly rare: {
    /** The handle of the last attempt. Undefined if the remote service does not have it. */
    readonly handle?: Handle | undefined
    /** Records of the last attempts, newest last. Undefined for a task with a single attempt. */
    readonly attempts?: readonly AttemptRecord[] | undefined
  }
}

/** An ended task whose record was deleted, replaced or removed by retention. */
export interface ForgottenTask extends ExecutableTask, DelegatedTask {
  /** When the first attempt started, in milliseconds since 1970. Undefined if all missed their start. */
  readonly startedAt: number | undefined
}

export interface FileRequest {
  /** Below the workspace; empty for the workspace. Names and single slashes. */
  readonly path: string
  /** `list`: of a directory only. `bytes`: a directory comes as a tar. `either`: the list of a directory, the bytes of a file. */
  readonly as: 'list' | 'bytes' | 'either'
  /** Default: the last attempt. */
  readonly attempt: number | undefined
  readonly method: 'GET' | 'HEAD'
  /** `Range` and `If-Range` of the caller. */
  readonly headers: Readonly<Record<string, string>>
}

export interface OpenFile {
  readonly attempt: number
  readonly status: number
  /** What they say of the file. */
  readonly headers: Headers
  /** Undefined for HEAD. A reader that leaves cancels it. */
  readonly stream: ReadableStream<Uint8Array> | undefined
}

/** What names an attempt within the service. */
export interface AttemptName {
  readonly id: string
  readonly graph: { readonly id: string }
  readonly attempt: number
}

/** The first byte to read in an output, or the number of its last lines. */
export type LogStart = { readonly offset: number } | { readonly tail: number }

/** Which output of a delegated attempt is read. */
export interface LogRequest {
  readonly stream: 'stdout' | 'stderr'
  readonly start: LogStart
  /** Called with the position of the first byte, before the byte is yielded. */
  readonly onStart: (offset: number) => void
  /** Undefined: only what is there. Else the reading goes on until the attempt has ended, or this is true. */
  readonly untilOver: (() => boolean) | undefined
  readonly traceId: string
  /** Ends the reading. */
  readonly signal: AbortSignal
}

/** Extra methods of executors that delegate to a remote service. */
export interface HandingOver {
  /**
   * The executor limits by itself how long it takes to return after the signal. The scheduler does not abandon it
   * earlier.
   */
  readonly boundsItsStop?: boolean
  /**
   * An attempt waits at first, for a place or in the queue of the remote service. Its timeout does not count before it
   * calls `works` or `goesOn`, and until then it may be stopped because it waits for too long.
   */
  readonly startsLater?: boolean
  /**
   * Kills a delegated attempt that nobody follows, at once or as soon as the remote service is reachable. Must not
   * throw.
   */
  killRemote?(task: ExecutableTask, handle: Handle): void
  /**
   * The result so far of a running attempt. Throws `ExecutionError` if the remote service does not answer.
   */
  resultSoFar?(handle: Handle, call: { readonly traceId: string; readonly signal: AbortSignal }): Promise<unknown>
  /**
   * The output of an attempt. Throws `ExecutionError` if the remote service does not
   * answer, or does not have it.
   */
  readLog?(handle: Handle, request: LogRequest): AsyncIterable<Uint8Array>
  /**
   * What an attempt did through the rules of its network. Throws `ExecutionError`, with `not_found` if the remote service
   * does not have it any more.
   */
  readNetwork?(handle: Handle, call: { readonly traceId: string; readonly signal: AbortSignal }): Promise<TaskNetwork>
  /**
   * Opens a file, or a directory, that an attempt has left in the remote service or writes there. Throws `ServiceError` with
   * the remedy.
   */
  openFile?(
    task: DelegatedTask,
    request: FileRequest,
    call: { readonly traceId: string; readonly signal: AbortSignal },
  ): Promise<OpenFile>
  /**
   * What delegated attempts wait for in the remote service, in words, by id of their handles. Attempts that execute are
   * left out. The value is undefined if the remote service does not answer within a moment. Must not throw.
   */
  waitingFor?(handles: readonly Handle[]): Promise<ReadonlyMap<string, string | undefined>>
  /**
   * What an attempt without a handle waits for before it can be delegated, in words. Undefined if it does not wait. Must
   * not throw.
   */
  waitingHere?(attempt: AttemptName): string | undefined
  /**
   * Asks the remote service for the plan of a task. The service stores nothing. Throws its refusal as `ExecutionError`.
   */
  plan?(
    task: Pick<ExecutableTask, 'toolName' | 'input' | 'timeout' | 'priority' | 'secrets'>,
    call: { readonly traceId: string; readonly signal: AbortSignal; readonly tenant?: string | undefined },
  ): Promise<TaskPlan>
  /**
   * For whom the remote service executes a task, as a text. A task takes over only outcomes of tasks with the same text.
   * Undefined if that is not known before the task starts. `handle` is that of its last attempt.
   */
  onBehalfOf?(task: Pick<ExecutableTask, 'input'>, handle?: Handle): string | undefined
  /** Asks the remote service to remove an ended task, at once or as soon as it is reachable. Must not throw. */
  forget?(task: ForgottenTask): void
}

/** The parameters of a tool. */
export interface ToolParameters {
  /** The name of the tool in error messages: `os.sleep`. */
  readonly label: string
  /** Parameters that the schema does not name are refused at submission. */
  readonly schema: TObject
}

/** How a tool takes secrets. */
export interface SecretTaking {
  /** A secret may go into a file of the workspace. */
  readonly inFiles: boolean
  /** Where the executor looks secrets up; undefined if another service does. */
  readonly directory?: SecretsDirectory
}

/** How a tool sends secrets of its input to another host. */
export interface SecretSending {
  readonly directory: SecretsDirectory
  readonly asker: SecretAsker
}

/**
 * Checks of an input at submission. All methods are optional. They must be synchronous and cheap: they run for every
 * submitted task, and never for a task that was read from disk. Of tasks of one tool without input and secrets, one stands
 * for those that follow it.
 */
export interface InputReview {
  /** The parameters of a tool. Undefined accepts any parameter. */
  parametersOf?(toolName: string | undefined): ToolParameters | undefined
  /**
   * Throws the `ExecutionError` that every attempt would fail with, whatever happens meanwhile. The task is accepted, with a
   * warning in the answer; a dry run has an error.
   */
  checkInput?(toolName: string | undefined, input: unknown, secrets?: SecretNames, tenant?: string): void
  /** The fault of an input with which the submission is refused, as an error of the task. Undefined if it has none. */
  inputFault?(toolName: string | undefined, input: unknown): string | undefined
  /** How a tool takes `secrets`. Undefined if it takes none: a task with secrets is refused at submission. */
  secretsOf?(toolName: string | undefined): SecretTaking | undefined
  /** How a tool sends the `$secret` of an input, which has null in place of what is not known yet. */
  sendingOf?(toolName: string | undefined, input: unknown): SecretSending | undefined
}

/** Whether what a task waits for has come, and with which result; or why not. */
export type Look = { readonly isMet: true; readonly result: unknown } | { readonly isMet: false; readonly why: string }

/** Executes tasks of one type. */
export interface Executor extends ExecutorHooks, HandingOver, InputReview {
  /** The value of `type` that brings tasks here. */
  readonly type: string
  /** Returns the JSON result. Throws `ExecutionError`; any other error counts as a bug (`internal`). */
  execute(task: ExecutableTask, context: ExecutorContext): unknown
  /** One look at what a task waits for that no attempt executes. Throws `ExecutionError` if no look can ever be met. */
  look?(input: unknown, call: Pick<ExecutorContext, 'signal' | 'tenant'>): Promise<Look>
  /**
   * The result of a task that takes no time, has no effects and cannot fail: `execute` is not called. Undefined for any other
   * task. Must be cheap, and return the same frozen value for all such tasks. Asked for tasks without options only, and not of
   * an executor with hooks.
   */
  knownResult?(task: Pick<ExecutableTask, 'toolName' | 'input'>): unknown
}

/** Executes tasks of one type with several tools. With an `execute` too, tasks without a tool name go there. */
export interface MethodExecutor extends ExecutorHooks, HandingOver, InputReview {
  readonly type: string
  /** Like `execute`. `method` is the tool name of the task. Throws `invalid_input` for an unknown one. */
  executeMethod(method: string, task: ExecutableTask, context: ExecutorContext): unknown
}

/** Throws `cancelled` with the text `what` if the attempt was stopped. Call it after a wait, before an effect. */
export function throwIfStopped({ signal }: Pick<ExecutorContext, 'signal'>, what: string): void {
  if (signal.aborted) throw new ExecutionError('cancelled', what)
}

/** The attempt failed. `message` becomes the task's `error`, `result` is kept with it. */
export class ExecutionError extends Error {
  override name = 'ExecutionError'
  readonly result: unknown
  readonly details: unknown
  /** Whether another attempt may succeed. Undefined if unknown. */
  readonly retryable: boolean | undefined
  /** The remote service that the failure comes from, if any. */
  readonly source: string | undefined
  /** The end of the output of the attempt. Undefined if the texts of `result` end with it. */
  readonly tail: string | undefined
  /** No other attempt can end better: the task fails without further attempts. */
  readonly isFinal: boolean
  constructor(
    readonly code: ErrorCode,
    message: string,
    options: ErrorOptions & {
      readonly result?: unknown
      readonly details?: unknown
      readonly retryable?: boolean | undefined
      readonly source?: string
      readonly tail?: string | undefined
      readonly isFinal?: boolean
    } = {},
  ) {
    super(message, options)
    this.result = options.result
    this.details = options.details
    this.retryable = options.retryable
    this.source = options.source
    this.tail = options.tail
    this.isFinal = options.isFinal === true
  }
}

/** Bad or missing parameters. */
export const invalidInput = (message: string) => new ExecutionError('invalid_input', message)

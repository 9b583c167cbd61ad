/** The jobs of the load generator. All of these values cross a process border as JSON; times are milliseconds. */
import type { SandboxPolicy } from '../../shared/contract/runtime-request.ts'

interface Aimed {
  /** `http://host:port` of the server. */
  readonly url: string
  /** The server's process, where it is known: then its CPU time is measured too. */
  readonly pid?: number | undefined
}

export interface RequestsResult {
  readonly ratePerSecond: number
  readonly p50Ms: number
  readonly p99Ms: number
  /** CPU time of the server for one request. */
  readonly serverCpuMs: number | null
  /** CPU time of the processes that the server started and waited for, for one request. Ticks of 10 ms in all. */
  readonly serverChildrenCpuMs: number | null
  /** What the generator used of one core; near 1 it is the generator that is measured. */
  readonly ownCoreShare: number
}

export interface GraphResult {
  /** From the first byte of POST to the end of the last task; of each run. */
  readonly elapsedMs: readonly number[]
  /** CPU time of the server in all runs. */
  readonly serverCpuMs: number | null
}

export interface ThroughResult {
  readonly direct: { readonly p50Ms: number; readonly p99Ms: number }
  readonly through: { readonly p50Ms: number; readonly p99Ms: number }
}

export interface LogsResult {
  /** From the moment at which all tasks have written to the end of all logs. */
  readonly elapsedMs: number
  /** What each of the servers used of one core meanwhile. */
  readonly coreShares: readonly number[]
}

export interface EventsResult {
  /** From a change to one client. */
  readonly p50Ms: number
  readonly p99Ms: number
  /** Events that were timed, at all clients together. */
  readonly count: number
  /** CPU time of the server for a graph and its events at all clients. */
  readonly serverCpuMs: number | null
}

/** Independent tasks; a chain; ten layers, in which each task depends on all of the layer before. */
export type Shape = 'wide' | 'chain' | 'layers'

export interface Jobs {
  /** Submits ten-task graphs, each client the next one as soon as it has its answer. */
  submit: {
    input: Aimed & { clients: number; graphs: number; warmUpGraphs: number; prefix: string }
    output: RequestsResult
  }
  /** Asks for `path` in the same way. */
  get: {
    input: Aimed & { path: string; clients: number; requests: number; warmUpRequests: number }
    output: RequestsResult
  }
  /**
   * Runs tasks of the runtime service that do nothing, one after the other for each client: POST, then a GET that is held
   * until the task has ended. Both are one request in the result. None begins after `limitMs`. `sandbox`: what the tasks ask for, and get or are refused.
   */
  run: {
    input: Aimed & {
      clients: number
      tasks: number
      warmUpTasks: number
      limitMs: number
      sandbox?: SandboxPolicy
      /** Program and arguments; default /bin/true. */
      command?: readonly [string, ...string[]]
      prefix: string
    }
    output: RequestsResult
  }
  /**
   * Runs graphs of one task at control, one after the other for each client: POST, then a GET that is held until the task
   * has succeeded. Both are one request in the result. None begins after `limitMs`.
   */
  one: {
    input: Aimed & {
      clients: number
      tasks: number
      warmUpTasks: number
      limitMs: number
      task: { readonly type: string; readonly params?: object }
      prefix: string
    }
    output: RequestsResult
  }
  /**
   * Runs tasks that do nothing, one after the other, by turns in the runtime service directly and as a graph of one task
   * of control, from POST to success seen. None begins after `limitMs`.
   */
  through: {
    input: {
      controlUrl: string
      runtimeUrl: string
      tasks: number
      warmUpTasks: number
      limitMs: number
      prefix: string
    }
    output: ThroughResult
  }
  /**
   * Runs `tasks` tasks of the runtime service at a time, and follows the log of each. Each runs `program`, which writes
   * `linesPerSecond` for `seconds`. `pids`: the servers.
   */
  logs: {
    input: {
      controlUrl: string
      pids: readonly number[]
      tasks: number
      program: string
      linesPerSecond: number
      seconds: number
      prefix: string
    }
    output: LogsResult
  }
  /** Submits one graph after the other and waits for the end of each. */
  graph: {
    input: Aimed & { shape: Shape; tasks: number; warmUps: number; repeats: number; prefix: string }
    output: GraphResult
  }
  /** Opens streams of all events, submits graphs of one task with pauses, and times each event at each client. */
  events: {
    input: Aimed & { clients: number; graphs: number; warmUpGraphs: number; prefix: string }
    output: EventsResult
  }
  /** Opens `count` streams of events, of the `paths` by turns, and leaves them open until the next `streams-close`. */
  'streams-open': { input: { url: string; paths: readonly string[]; count: number }; output: null }
  /** Waits until each of them has told of the end of `graphs` graphs since it was opened, or since the last such job. */
  'streams-told': { input: { graphs: number }; output: null }
  'streams-close': { input: null; output: null }
  /** Asks GET /health over and over, in the background, until the next `probe-stop`. */
  'probe-start': { input: { url: string }; output: null }
  /** The longest time that one of the answers took. */
  'probe-stop': { input: null; output: { longestMs: number; count: number } }
}

export type JobName = keyof Jobs

export interface JobMessage<N extends JobName = JobName> {
  readonly name: N
  readonly input: Jobs[N]['input']
}

export type JobAnswer = { readonly output: unknown } | { readonly error: string }

/**
 * Starts a real control service for one test, with its own port and directory, and stops it at the end of the block.
 */
import { type MetricsResponse, TaskRecord } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { checkedAnswer } from './answer-check.ts'
import { type LogLine, type ServiceOptions, type StartedService, startService, stopService } from './service.ts'
import { until } from './until.ts'

export type ControlOptions = ServiceOptions

export class Control implements AsyncDisposable {
  readonly url: string
  readonly cwd: string
  readonly dataDir: string
  readonly process: StartedService['process']
  /** What it has logged so far; grows. */
  readonly log: LogLine[]
  readonly #service: StartedService
  constructor(service: StartedService) {
    this.#service = service
    this.url = service.url
    this.cwd = service.cwd
    this.dataDir = service.dataDir
    this.process = service.process
    this.log = service.log
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init)
  }

  /** POST /tasks with whatever body. */
  post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch('/tasks', {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  }

  /** Submits a graph that must be accepted. */
  async submit(tasks: readonly object[], headers: Record<string, string> = {}): Promise<SubmitResponse> {
    const response = await this.post({ tasks }, headers)
    if (response.status !== 202) throw new Error(`not accepted: ${response.status} ${await response.text()}`)
    return (await response.json()) as SubmitResponse
  }

  /** Asks again after 503, as clients do: on a busy machine a database may not answer within a short lease. */
  #whenReady(path: string): Promise<Response> {
    return until(
      () => this.fetch(path),
      ({ status }) => status !== 503,
    )
  }

  async get(id: string): Promise<TaskRecord> {
    const response = await this.#whenReady(`/tasks/${encodeURIComponent(id)}`)
    if (response.status !== 200) throw new Error(`no task ${id}: ${response.status} ${await response.text()}`)
    return checkedAnswer(TaskRecord, await response.json())
  }

  async list(): Promise<TaskRecord[]> {
    return (await (await this.#whenReady('/tasks')).json()) as TaskRecord[]
  }

  async metrics(): Promise<MetricsResponse> {
    return (await (await this.fetch('/metrics')).json()) as MetricsResponse
  }

  /** The task once it has ended. */
  ended(id: string): Promise<TaskRecord> {
    return until(
      () => this.get(id),
      (task) => isTerminal(task.status),
    )
  }

  /** The task once it is in `status`. */
  reached(id: string, status: TaskRecord['status']): Promise<TaskRecord> {
    return until(
      () => this.get(id),
      (task) => task.status === status,
    )
  }

  /** All tasks once all have ended. */
  allEnded(): Promise<TaskRecord[]> {
    return until(
      () => this.list(),
      (tasks) => tasks.every((task) => isTerminal(task.status)),
    )
  }

  /** Runs one task on its own to its end. */
  async run(task: object): Promise<TaskRecord> {
    const { task_ids } = await this.submit([{ id: crypto.randomUUID(), ...task }])
    return this.ended(task_ids[0]!)
  }

  /** Ends the service with `signal` and gives its exit code, or the signal's name. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    return stopService(this.#service, signal)
  }

  dispose(): Promise<void> {
    return this.#service.dispose()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}

/** Starts a control service and waits until it listens. Fails with its output when it does not. */
export const startControl = async (options: ControlOptions = {}): Promise<Control> =>
  new Control(await startService('taskmill-control', ['--addr', '127.0.0.1:0'], options))

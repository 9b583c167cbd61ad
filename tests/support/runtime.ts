/**
 * Starts a real runtime service for one test, with its own port and directory, and stops it at the end of the block.
 */
import {
  type EventRecord,
  type SubmitTaskResponse,
  type TaskListResponse,
  TaskStatusResponse,
  type TaskSummary,
} from '../../shared/contract/runtime.ts'
import type { ResourcesSnapshot } from '../../shared/contract/runtime-info.ts'
import { checkedAnswer } from './answer-check.ts'
import { type LogLine, type ServiceOptions, type StartedService, startService, stopService } from './service.ts'
import { until } from './until.ts'

const TASKS = '/api/v1/tasks'

export class Runtime implements AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  readonly process: StartedService['process']
  /** What it has logged so far; grows. */
  readonly log: LogLine[]
  readonly #service: StartedService
  /** Of the token of the service. `json` and `kill` send them. */
  readonly #headers: Readonly<Record<string, string>>
  constructor(service: StartedService, token?: string) {
    this.#service = service
    this.#headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    this.url = service.url
    this.dataDir = service.dataDir
    this.process = service.process
    this.log = service.log
  }

  /** All that it wrote to its standard error, once it has ended. */
  get stderr(): Promise<string> {
    return this.#service.stderr
  }

  fetch(path: string, init?: RequestInit): Promise<Response> {
    return fetch(this.url + path, init)
  }

  /** GET of something that must be there. */
  async json<T>(path: string): Promise<T> {
    const response = await this.fetch(path, { headers: this.#headers })
    if (response.status !== 200) throw new Error(`GET ${path}: ${response.status} ${await response.text()}`)
    return (await response.json()) as T
  }

  /** POST /api/v1/tasks with whatever body. */
  post(body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch(TASKS, {
      method: 'POST',
      headers,
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
  }

  /** Submits a task that must be accepted, and gives its id. */
  async submit(body: object): Promise<string> {
    const response = await this.post(body)
    if (response.status !== 200) throw new Error(`not accepted: ${response.status} ${await response.text()}`)
    return ((await response.json()) as SubmitTaskResponse).task_id
  }

  /** Submits a script of /bin/sh; `more` are further fields of the request. */
  script(script: string, more: object = {}): Promise<string> {
    return this.submit({ execution: { kind: 'script', script }, ...more })
  }

  async get(id: string): Promise<TaskStatusResponse> {
    return checkedAnswer(TaskStatusResponse, await this.json(`${TASKS}/${id}`))
  }

  /** All tasks, in the order in which they were accepted. */
  async list(): Promise<TaskSummary[]> {
    const all: TaskSummary[] = []
    for (let cursor = '0'; ; ) {
      const page = await this.json<TaskListResponse>(`${TASKS}?limit=1000&cursor=${cursor}`)
      all.push(...page.tasks)
      if (page.next_cursor === undefined) return all
      cursor = page.next_cursor
    }
  }

  events(id: string): Promise<EventRecord[]> {
    return this.json(`${TASKS}/${id}/events`)
  }

  async eventTypes(id: string): Promise<string[]> {
    return (await this.events(id)).map(({ event_type }) => event_type)
  }

  resources(): Promise<ResourcesSnapshot> {
    return this.json('/api/v1/runtime/resources')
  }

  kill(id: string, headers: Record<string, string> = {}): Promise<Response> {
    return this.fetch(`${TASKS}/${id}/kill`, { method: 'POST', headers: { ...this.#headers, ...headers } })
  }

  /** The task once it is in `status`. */
  reached(id: string, status: TaskStatusResponse['status']): Promise<TaskStatusResponse> {
    return until(
      () => this.get(id),
      (task) => task.status === status,
    )
  }

  /** The task once it has ended. */
  async ended(id: string): Promise<TaskStatusResponse> {
    for (;;) {
      const task = await this.json<TaskStatusResponse>(`${TASKS}/${id}?wait_ms=20000`)
      if (task.status !== 'accepted' && task.status !== 'running') return task
    }
  }

  /** The task once its output is as wanted. */
  printed(id: string, isWanted: (stdout: string) => boolean = (stdout) => stdout.endsWith('\n')) {
    return until(
      () => this.get(id),
      ({ stdout }) => isWanted(stdout ?? ''),
    )
  }

  /** Runs one task to its end. */
  async run(body: object): Promise<TaskStatusResponse> {
    return this.ended(await this.submit(body))
  }

  /** Runs a script of /bin/sh to its end. */
  async runScript(script: string, more: object = {}): Promise<TaskStatusResponse> {
    return this.ended(await this.script(script, more))
  }

  /** Ends the service with `signal` and gives its exit code, or the signal's name. */
  stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    return stopService(this.#service, signal)
  }

  /** Tasks outlive their service; those of a test must not. */
  async dispose(): Promise<void> {
    try {
      await this.#endTasks()
    } finally {
      await this.#service.dispose()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }

  async #endTasks(): Promise<void> {
    if (this.process.exitCode !== null || this.process.signalCode !== null) return
    for (const status of ['accepted', 'running']) {
      const { tasks } = await this.json<{ tasks: TaskStatusResponse[] }>(`${TASKS}?status=${status}&limit=1000`)
      const ownerOf = async (id: string) => /requires owner '(.*)'/.exec(await (await this.kill(id)).text())?.[1]
      for (const { task_id } of tasks) {
        const owner = await ownerOf(task_id)
        if (owner !== undefined) await this.kill(task_id, { 'x-service-owner': owner })
      }
      for (const { task_id } of tasks) await this.#endedOrRemoved(task_id)
    }
  }

  /** A short retention may remove an ended task before its turn. */
  async #endedOrRemoved(id: string): Promise<void> {
    await this.ended(id).catch(async (error) => {
      if ((await this.fetch(`${TASKS}/${id}`)).status !== 404) throw error
    })
  }
}

/** Starts a runtime service and waits until it listens. Fails with its output when it does not. */
export const startRuntime = async (options: ServiceOptions = {}): Promise<Runtime> =>
  new Runtime(
    await startService('taskmill-runtime', ['serve', '--listen-addr', '127.0.0.1:0'], {
      ...options,
      flags: ['--termination-grace-ms', '500', ...(options.flags ?? [])],
    }),
    options.env?.SERVICE_TOKEN,
  )

/** A real control service of one test: own port, own directory, gone at the end of its block. */
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { builtProgram as binary } from '../../scripts/build.ts'
import type { MetricsResponse, SubmitResponse, TaskRecord } from '../../shared/contract/control.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

export interface ControlOptions {
  readonly flags?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** Keep what is in it: several services one after the other. Default: a new one that goes with the service. */
  readonly dataDir?: string
  /** Working directory of the service. Default: a new, empty one. */
  readonly cwd?: string
}

export type LogLine = Readonly<Record<string, unknown>>

export class Control implements AsyncDisposable {
  constructor(
    readonly url: string,
    readonly cwd: string,
    readonly dataDir: string,
    readonly process: Subprocess<'ignore', 'pipe', 'pipe'>,
    /** What it has logged so far; grows. */
    readonly log: LogLine[],
    readonly dispose: () => Promise<void>,
  ) {}

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

  async get(id: string): Promise<TaskRecord> {
    const response = await this.fetch(`/tasks/${encodeURIComponent(id)}`)
    if (response.status !== 200) throw new Error(`no task ${id}: ${response.status} ${await response.text()}`)
    return (await response.json()) as TaskRecord
  }

  async list(): Promise<TaskRecord[]> {
    return (await (await this.fetch('/tasks')).json()) as TaskRecord[]
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
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string> {
    this.process.kill(signal)
    await this.process.exited
    return this.process.signalCode ?? this.process.exitCode!
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose()
  }
}

/** The environment of every executable under test: ours reaches none of them. The mark lets the suite find leftovers. */
export const testEnvironment = (extra: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  ...(process.env.TASKMILL_TEST_RUN === undefined ? {} : { TASKMILL_TEST_RUN: process.env.TASKMILL_TEST_RUN }),
  ...extra,
})

/** Starts a service and waits until it listens. Fails with its output when it does not. */
export async function startControl(options: ControlOptions = {}): Promise<Control> {
  const temp = tempDir()
  const cwd = options.cwd ?? temp.path
  const dataDir = options.dataDir ?? join(temp.path, 'data')
  const child = Bun.spawn(
    [await binary('taskmill-control'), '--addr', '127.0.0.1:0', '--data-dir', dataDir, ...(options.flags ?? [])],
    { cwd, env: testEnvironment(options.env), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  )
  const stderr = new Response(child.stderr).text()
  const log: LogLine[] = []
  const { promise: listening, resolve: isListening } = Promise.withResolvers<string>()
  const reading = readLines(child.stdout, (text) => {
    const line = JSON.parse(text) as LogLine
    log.push(line)
    if (line.msg === 'listening') isListening(String(line.url))
  })
  const dispose = async () => {
    child.kill('SIGKILL')
    await Promise.all([child.exited, reading])
    temp[Symbol.dispose]()
  }
  const url = await Promise.race([listening, child.exited.then(() => undefined)])
  if (url === undefined) {
    await dispose()
    throw new Error(`control did not start: ${await stderr}`)
  }
  return new Control(url, cwd, dataDir, child, log, dispose)
}

async function readLines(stream: ReadableStream<Uint8Array>, each: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) each(line)
  }
}

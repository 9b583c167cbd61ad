/**
 * Starts control and the runtime service together. A test can stop and restart each of them. Both are gone at the end
 * of the block.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { TaskStatusResponse } from '../../shared/contract/runtime.ts'
import { type Control, startControl } from './control.ts'
import { freePort } from './free-port.ts'
import { type Runtime, startRuntime } from './runtime.ts'
import { endProcessesOf } from './task-processes.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

export interface PairOptions {
  readonly controlFlags?: readonly string[]
  readonly runtimeFlags?: readonly string[]
  readonly controlEnv?: Readonly<Record<string, string>>
  readonly runtimeEnv?: Readonly<Record<string, string>>
  /** Where control believes the runtime service to be. Default: where it is. */
  readonly runtimeUrl?: (url: string) => string
}

export class Pair implements AsyncDisposable {
  readonly #temp = tempDir()
  readonly #processes = endProcessesOf(this.#temp.path)
  readonly #options: PairOptions
  readonly #port: number
  #control: Control | undefined
  #runtime: Runtime | undefined

  constructor(port: number, options: PairOptions) {
    this.#port = port
    this.#options = options
  }

  get control(): Control {
    return this.#control!
  }

  get runtime(): Runtime {
    return this.#runtime!
  }

  /** Where the runtime service is, or will be. */
  get runtimeUrl(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** A path that no task or service has anything to do with but by its name. */
  file(name: string): string {
    return join(this.#temp.path, name)
  }

  /** The lines of such a file. */
  lines(name: string): string[] {
    const path = this.file(name)
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  }

  async startRuntime(): Promise<Runtime> {
    const { runtimeFlags = [], runtimeEnv = {} } = this.#options
    const flags = ['--listen-addr', `127.0.0.1:${this.#port}`, ...runtimeFlags]
    await this.#runtime?.dispose() // one that ended by itself
    this.#runtime = await startRuntime({ dataDir: this.file('runtime'), flags, env: runtimeEnv })
    return this.#runtime
  }

  async startControl(more: readonly string[] = []): Promise<Control> {
    const { controlFlags = [], controlEnv = {}, runtimeUrl = (url) => url } = this.#options
    const flags = ['--runtime-url', runtimeUrl(this.runtimeUrl), ...controlFlags, ...more]
    await this.#control?.dispose()
    this.#control = await startControl({ dataDir: this.file('control'), flags, env: controlEnv })
    return this.#control
  }

  async stopRuntime(signal: NodeJS.Signals): Promise<void> {
    await this.runtime.stop(signal)
    await this.runtime.dispose()
  }

  async stopControl(signal: NodeJS.Signals): Promise<void> {
    await this.control.stop(signal)
    await this.control.dispose()
  }

  /** Submits one task of type runtime that runs `script`. */
  async script(id: string, script: string, more: object = {}): Promise<void> {
    await this.control.submit([{ id, type: 'runtime.script', params: { script }, ...more }])
  }

  /** The task once the runtime service has it, as that sees it. */
  async there(id: string, isWanted = (_: TaskStatusResponse) => true): Promise<TaskStatusResponse> {
    const { handle_id } = await until(
      () => this.control.get(id),
      (task) => task.handle_id !== undefined,
    )
    return until(
      async () => {
        const response = await this.runtime.fetch(`/api/v1/tasks/${handle_id}`)
        return response.status === 200 ? ((await response.json()) as TaskStatusResponse) : undefined
      },
      (status) => status !== undefined && isWanted(status),
    ) as Promise<TaskStatusResponse>
  }

  /** The task once it runs there and has printed a line. */
  running(id: string): Promise<TaskStatusResponse> {
    return this.there(id, ({ status, stdout }) => status === 'running' && stdout?.endsWith('\n') === true)
  }

  /** How the task ended, as both see it. */
  async ended(id: string): Promise<{ here: TaskRecord; there: TaskStatusResponse }> {
    const here = await this.control.ended(id)
    return { here, there: await this.runtime.ended(here.handle_id!) }
  }

  /** The runtime service has nothing reserved and nothing to do. */
  async isQuiet(): Promise<void> {
    await until(
      () => this.runtime.resources(),
      ({ active_reservations, accepted_waiting_tasks }) =>
        active_reservations.length === 0 && accepted_waiting_tasks === 0,
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#control?.dispose(), this.#runtime?.dispose()])
    await this.#processes[Symbol.asyncDispose]()
    this.#temp[Symbol.dispose]()
  }
}

/** Both started, the runtime service first. */
export async function startPair(options: PairOptions = {}): Promise<Pair> {
  const pair = new Pair(await freePort(), options)
  await pair.startRuntime()
  await pair.startControl()
  return pair
}

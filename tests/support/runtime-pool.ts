/**
 * Starts control and several runtime services with names. A test can stop and restart each of them. All are gone at the
 * end of the block.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from './control.ts'
import { freePort } from './free-port.ts'
import { type Runtime, startRuntime } from './runtime.ts'
import { endProcessesOf } from './task-processes.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

/** Flags of a runtime service, by its name as `--runtime-url` has it. */
export type Members = Readonly<Record<string, { readonly labels?: string; readonly flags?: readonly string[] }>>

export class StartedPool implements AsyncDisposable {
  readonly #temp = tempDir()
  readonly #processes = endProcessesOf(this.#temp.path)
  readonly #members: Members
  readonly #ports = new Map<string, number>()
  readonly #runtimes = new Map<string, Runtime>()
  #control: Control | undefined

  constructor(members: Members) {
    this.#members = members
  }

  get control(): Control {
    return this.#control!
  }

  runtime(name: string): Runtime {
    return this.#runtimes.get(name)!
  }

  urlOf(name: string): string {
    return `http://127.0.0.1:${this.#ports.get(name)!}`
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

  async takePorts(): Promise<void> {
    for (const name of Object.keys(this.#members)) this.#ports.set(name, await freePort())
  }

  async startRuntime(name: string, more: readonly string[] = []): Promise<Runtime> {
    const port = this.#ports.get(name) ?? (await freePort())
    this.#ports.set(name, port)
    await this.#runtimes.get(name)?.dispose()
    const flags = ['--listen-addr', `127.0.0.1:${port}`, ...(this.#members[name]?.flags ?? []), ...more]
    const runtime = await startRuntime({ dataDir: this.file(`runtime-${name}`), flags })
    this.#runtimes.set(name, runtime)
    return runtime
  }

  async killRuntime(name: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.runtime(name).stop(signal)
    await this.runtime(name).dispose()
  }

  async startControl(more: readonly string[] = [], env: Readonly<Record<string, string>> = {}): Promise<Control> {
    const urls = Object.entries(this.#members).flatMap(([name, { labels }]) => [
      '--runtime-url',
      [`${name}=${this.urlOf(name)}`, ...(labels === undefined ? [] : [labels])].join(','),
    ])
    await this.#control?.dispose()
    const flags = ['--shutdown-timeout', '0s', ...urls, ...more]
    this.#control = await startControl({ dataDir: this.file('control'), flags, env })
    return this.#control
  }

  async killControl(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await this.control.stop(signal)
    await this.control.dispose()
  }

  /** A task that prints a line, notes its run, and ends once `go` exists. */
  gated(id: string, params: object = {}, more: object = {}): object {
    const script = `echo; echo ${id} >> ${this.file('ran')}; while [ ! -e '${this.file('go')}' ]; do sleep 0.02; done`
    return { id, type: 'runtime.script', params: { script, ...params }, ...more }
  }

  open(): Promise<number> {
    return Bun.write(this.file('go'), '')
  }

  /** The name of the runtime service on which the task runs, once its script has begun. */
  async running(id: string): Promise<string> {
    await until(
      () => this.lines('ran'),
      (lines) => lines.includes(id),
    )
    const { placed_on } = await this.control.reached(id, 'running')
    return placed_on!
  }

  /** The reason in words why the task waits, once it is as wanted. */
  async waits(id: string, isWanted: (detail: string) => boolean): Promise<string> {
    const { waiting } = await until(
      () => this.control.get(id),
      ({ waiting }) => waiting?.reason === 'runtime' && isWanted(waiting.detail ?? ''),
    )
    return waiting!.detail!
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#control, ...this.#runtimes.values()].map((service) => service?.dispose()))
    await this.#processes[Symbol.asyncDispose]()
    this.#temp[Symbol.dispose]()
  }
}

/** All runtime services, then control. */
export async function startPool(members: Members, controlFlags: readonly string[] = []): Promise<StartedPool> {
  const pool = new StartedPool(members)
  await pool.takePorts()
  await Promise.all(Object.keys(members).map((name) => pool.startRuntime(name)))
  await pool.startControl(controlFlags)
  return pool
}

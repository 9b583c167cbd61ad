/** A fork server without a service: the test writes request bytes and reads lines. */
import { closeSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { launcherArguments } from '../../runtime/launch/arguments.ts'
import { launchRequest } from '../../runtime/launch/launch-request.ts'
import { isLauncherAlive, requestKill } from '../../runtime/launch/launcher-files.ts'
import type { Environment } from '../../runtime/launch/launcher-host.ts'
import type { LaunchPlan } from '../../runtime/launch/plan.ts'
import { drain, makeFifo, openBothEnds } from './fifo.ts'
import { type LauncherVariant, taskEnv } from './launchers.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

interface BareForkServerOptions {
  /** Runs the fork server through this command. */
  readonly through?: readonly string[]
  /** Further descriptors that it finds open, from 4 on. */
  readonly inherited?: readonly number[]
  /** Instead of those that a fork server is started with. */
  readonly argv?: readonly string[]
}

export class BareForkServer implements AsyncDisposable {
  readonly #temp = tempDir()
  readonly #dirs = new Set<string>()
  readonly notifyFd: number
  readonly process: Subprocess<'pipe', 'ignore', 'pipe'>
  /** All that it, or a launcher of it, wrote to its standard error, once all of them have ended. */
  readonly complaints: Promise<string>
  #said = ''

  constructor(
    { command }: LauncherVariant,
    { through = [], inherited = [], argv = ['--fork-server', '3', ' '.repeat(300)] }: BareForkServerOptions = {},
  ) {
    const path = join(this.#temp.path, 'notify')
    makeFifo(path)
    this.notifyFd = openBothEnds(path)
    this.process = Bun.spawn([...through, ...command, ...argv], {
      // LeakSanitizer traces the process at its end, which hangs now and then: a launch leaks nothing that outlives it.
      env: { TASKMILL_TASK: ' '.repeat(200), ASAN_OPTIONS: 'detect_leaks=0', ...taskEnv },
      stdio: ['pipe', 'ignore', 'pipe', this.notifyFd, ...inherited] as unknown as ['pipe', 'ignore', 'pipe'],
    })
    this.complaints = new Response(this.process.stderr).text()
  }

  get pid(): number {
    return this.process.pid
  }

  dirOf(task_id: string): string {
    return join(this.#temp.path, task_id)
  }

  /** A request for a task in a directory that was made for it, or in that of `more`. */
  request(task_id: string, command: LaunchPlan['command'], launch = 1, more: Partial<LaunchPlan> = {}): Buffer {
    const task_dir = this.dirOf(task_id)
    mkdirSync(task_dir, { recursive: true })
    this.#dirs.add(task_dir)
    const limits = { wall_time_ms: 60_000, grace_ms: 10_000, max_output_bytes: 1e9 }
    return encode(launch, { task_id, task_dir, workdir: task_dir, command, ...limits, ...more })
  }

  write(...chunks: readonly Uint8Array[]): void {
    for (const chunk of chunks) {
      this.process.stdin.write(chunk)
      this.process.stdin.flush()
    }
  }

  /** Everything that was said so far. */
  get said(): string {
    this.#said += drain(this.notifyFd)
    return this.#said
  }

  /** What was said, once it holds `count` lines that begin with `word`. */
  async hears(word: string, count = 1): Promise<string[]> {
    const find = () => this.said.split('\n').filter((line) => line.startsWith(`${word} `))
    return await until(find, (lines) => lines.length >= count)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.process.kill('SIGCONT')
    this.process.stdin.end()
    await this.process.exited
    await until(
      () => [...this.#dirs].filter((dir) => isLauncherAlive(dir) && (requestKill(dir) || true)),
      (alive) => alive.length === 0,
    )
    closeSync(this.notifyFd)
    this.#temp[Symbol.dispose]()
  }
}

export function encode(launch: number, plan: LaunchPlan, env: Environment = taskEnv): Buffer {
  const request = launchRequest(launch, launcherArguments(plan), env)
  if ('code' in request) throw new Error(request.code)
  return request.bytes
}

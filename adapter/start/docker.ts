/**
 * Runs docker commands with our environment, captured output and a time limit.
 *
 * The docker command only asks its daemon. A kill of a command that hangs ends nothing else. Each command leads a process
 * group, because wrappers and plug-ins run below it. Commands under way end with the client. A process that docker
 * leaves behind on purpose (podman's monitor of a container) may keep the output open; we do not wait for it.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import { endGroup, STRAY_OUTPUT_MS } from '../../shared/process/process-group.ts'
import { formatDuration } from '../../shared/settings/duration.ts'
import { plainLines } from './attempt.ts'

export type Program = 'docker' | 'docker-compose'

export interface DockerRun {
  readonly isOk: boolean
  /** The last 64 KiB of each stream. */
  readonly stdout: string
  readonly stderr: string
  /** The error, with the last line of docker. Empty if there was none. */
  readonly fault: string
  /** Commands to try, for known faults. */
  readonly hints: readonly string[]
}

/** Milliseconds for a query, which needs no image. A daemon that has just started takes seconds. */
const QUERY_MS = 20_000

/** Bytes kept of stdout and of stderr: the last ones, which tell the outcome. */
const KEPT_BYTES = 64 * 1024

/** Milliseconds between TERM and KILL for a command past its time limit. */
const KILL_GRACE_MS = 1_000

/** Process groups of running commands, which end with the client. */
const running = new Set<number>()
let isWatchingExit = false

export class Docker {
  readonly #env: Record<string, string>
  readonly #limitMs: number

  /** `limitMs` applies to each command. */
  constructor({ env, limitMs }: { env: Readonly<Record<string, string | undefined>>; limitMs: number }) {
    this.#env = Object.fromEntries(
      Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    this.#limitMs = limitMs
  }

  has(program: Program): boolean {
    return this.#pathOf(program) !== null
  }

  #lateness(limit: number | AbortSignal): string {
    if (typeof limit !== 'number') return 'was stopped'
    const setting = limit === this.#limitMs ? ' (--docker-timeout)' : ''
    return `did not end within ${formatDuration(limit)}${setting} and was stopped`
  }

  #pathOf(program: Program): string | null {
    return Bun.which(program, { PATH: this.#env.PATH ?? '' })
  }

  /** Runs a command that changes nothing, with a shorter time limit. */
  ask(program: Program, args: readonly string[], { cwd }: { cwd?: string } = {}): Promise<DockerRun> {
    return this.run(program, args, { ...(cwd !== undefined && { cwd }), limit: Math.min(QUERY_MS, this.#limitMs) })
  }

  /** `limit` is milliseconds (default `--docker-timeout`), or a signal that ends the command. */
  async run(
    program: Program,
    args: readonly string[],
    { cwd, limit = this.#limitMs }: { cwd?: string; limit?: number | AbortSignal } = {},
  ): Promise<DockerRun> {
    const firstFlag = args.findIndex((arg) => arg.startsWith('-'))
    const what = [program, ...args.slice(0, firstFlag < 0 ? undefined : firstFlag)].join(' ')
    const path = this.#pathOf(program)
    if (path === null) return notRun(`${program} is not in PATH`)
    let child: Bun.Subprocess<'ignore', 'pipe', 'pipe'>
    try {
      child = Bun.spawn([path, ...args], {
        ...(cwd !== undefined && { cwd }),
        env: this.#env,
        detached: true,
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
    } catch (error) {
      return notRun(`cannot run ${path}: ${messageOf(error)}`)
    }
    endWithUs(child.pid)
    const stopReading = new AbortController()
    const output = Promise.all([readEnd(child.stdout, stopReading.signal), readEnd(child.stderr, stopReading.signal)])
    const isLate = !(await endsInTime(child, limit))
    if (isLate) await endGroup(child.pid, KILL_GRACE_MS)
    running.delete(child.pid)
    const timer = setTimeout(() => stopReading.abort(), STRAY_OUTPUT_MS)
    const [stdout, stderr] = await output
    clearTimeout(timer)
    if (child.exitCode === 0 && !isLate) return { isOk: true, stdout, stderr, fault: '', hints: [] }
    const ending = isLate ? this.#lateness(limit) : `failed (${child.signalCode ?? `exit code ${child.exitCode}`})`
    const said = tellingLine(stderr) ?? tellingLine(stdout)
    const hasNoDaemon = /cannot connect to the docker daemon|is the docker daemon running/i.test(stderr)
    const cause = `${hasNoDaemon ? 'the docker daemon does not answer: ' : ''}${said ?? 'it said nothing'}`
    return {
      isOk: false,
      stdout,
      stderr,
      fault: `${what} ${ending}: ${cause}`,
      hints: hasNoDaemon || isLate ? ['docker info'] : [],
    }
  }
}

const notRun = (fault: string): DockerRun => ({ isOk: false, stdout: '', stderr: '', fault, hints: [] })

/** Whether `child` ended by itself before the limit: milliseconds, or a signal. */
async function endsInTime(child: Bun.Subprocess, limit: number | AbortSignal): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const timer = typeof limit === 'number' ? setTimeout(resolve, limit, false) : undefined
  if (typeof limit !== 'number') {
    limit.addEventListener('abort', () => resolve(false), { once: true })
    if (limit.aborted) resolve(false)
  }
  const isInTime = await Promise.race([child.exited.then(() => true), late])
  clearTimeout(timer)
  return isInTime
}

/** The last `KEPT_BYTES` of a stream, as text. */
async function readEnd(stream: ReadableStream<Uint8Array>, signal: AbortSignal): Promise<string> {
  const reader = stream.getReader()
  signal.addEventListener('abort', () => void reader.cancel().catch(() => {}), { once: true })
  let kept = Buffer.alloc(0)
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return kept.toString('utf8')
    kept = Buffer.concat([kept, value])
    if (kept.byteLength > KEPT_BYTES) kept = kept.subarray(kept.byteLength - KEPT_BYTES)
  }
}

/** Lines that docker writes below every error. */
const BOILERPLATE = /^(Run|See) 'docker|^Usage:|^Error: failed to start containers:/

/** The last line that tells the cause, without those that only refer to the help or repeat the command. */
export function tellingLine(output: string): string | undefined {
  const lines = plainLines(output)
  return lines.findLast((line) => !BOILERPLATE.test(line)) ?? lines.at(-1)
}

function endWithUs(pid: number): void {
  running.add(pid)
  if (isWatchingExit) return
  isWatchingExit = true
  process.on('exit', () => {
    for (const group of running) {
      try {
        process.kill(-group, 'SIGTERM')
      } catch {
        // The group has just ended.
      }
    }
  })
}

/**
 * Runs docker's commands: with our environment, nothing on our standard output, and never longer than allowed.
 *
 * docker only asks its daemon, so ending a docker that hangs ends nothing else. It leads a process group of its own, as
 * wrappers and plug-ins run below it, and what is under way when the client is interrupted ends with it. What docker
 * leaves behind by intention (podman's monitor of a container, say) may hold its output open; we do not wait for that.
 */
import { formatDuration } from '../../shared/duration.ts'
import { messageOf } from '../../shared/errors.ts'
import { endGroup } from '../../shared/process-group.ts'
import { plainLines } from './attempt.ts'

export type Program = 'docker' | 'docker-compose'

export interface DockerRun {
  readonly isOk: boolean
  /** The last 64 KiB of each. */
  readonly stdout: string
  readonly stderr: string
  /** Empty when all is well; else what went wrong, with docker's own last line. */
  readonly fault: string
  /** Something to try, for faults that are known. */
  readonly hints: readonly string[]
}

/** Milliseconds for a question, which needs no image. A daemon that has just been woken takes seconds. */
const QUESTION_MS = 20_000

/** Bytes kept of each of stdout and stderr: the last ones, where the outcome stands. */
const KEPT_BYTES = 64 * 1024

/** Milliseconds between TERM and KILL for a docker that ran out of time. */
const KILL_GRACE_MS = 1_000

/** Milliseconds that somebody who inherited docker's output may hold up our reading of it. */
const STRAY_OUTPUT_MS = 200

/** Groups under way, to end with us. */
const running = new Set<number>()
let isWatchingExit = false

export class Docker {
  readonly #env: Record<string, string>
  readonly #limitMs: number

  /** `limitMs` holds for each command. */
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

  /** A command that changes nothing, and so gets less time. */
  ask(program: Program, args: readonly string[], { cwd }: { cwd?: string } = {}): Promise<DockerRun> {
    return this.run(program, args, { ...(cwd !== undefined && { cwd }), limit: Math.min(QUESTION_MS, this.#limitMs) })
  }

  /** `limit` is milliseconds, `--docker-timeout` unless given, or a signal that ends the command. */
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
    const letGo = new AbortController()
    const output = Promise.all([readEnd(child.stdout, letGo.signal), readEnd(child.stderr, letGo.signal)])
    const isLate = !(await endsInTime(child, limit))
    if (isLate) await endGroup(child.pid, KILL_GRACE_MS)
    running.delete(child.pid)
    const timer = setTimeout(() => letGo.abort(), STRAY_OUTPUT_MS)
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

/** True when `child` ended by itself before the limit: milliseconds, or a signal. */
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

/** What docker writes below an error, whatever the error was. */
const BOILERPLATE = /^(Run|See) 'docker|^Usage:|^Error: failed to start containers:/

/** docker's own last line, passing over those that only refer to its help or repeat what it was asked. */
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
        // it has just ended
      }
    }
  })
}

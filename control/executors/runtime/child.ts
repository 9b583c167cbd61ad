/**
 * A runtime service of our own, for who wants to start one program only.
 *
 * It is started where none answers, started again when it ends, and told to end when this service does; tasks that it
 * runs go on and are found again. Should this service be killed, it runs on, and the next start takes its place: a
 * restart of it harms no task.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../../shared/errors.ts'
import type { Log } from '../../../shared/log.ts'
import { identify, isStillThere, type ProcessIdentity } from '../../../shared/processes.ts'
import { findSibling, siblingNotFound } from '../../../shared/sibling.ts'
import { startAddress } from '../../../shared/start-address.ts'
import type { RuntimeService } from './service.ts'

const PROGRAM = 'taskmill-runtime'

/** Milliseconds that it may take to be ready, or to end. */
const READY_WITHIN_MS = 15_000
const END_WITHIN_MS = 10_000

/** Milliseconds between two looks while it starts or ends. */
const LOOK_MS = 10

/** Milliseconds before it is started again: at first, and at most. After a minute of life the first counts again. */
const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 10_000
const LONG_LIFE_MS = 60_000

export interface RuntimeChildOptions {
  readonly service: RuntimeService
  readonly dataDir: string
  /** All of it goes to the child, but for the token, which is `token`. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly token: string | undefined
  readonly log: Log
}

export class RuntimeChild {
  readonly #options: RuntimeChildOptions
  readonly #pidPath: string
  #child: Bun.Subprocess | undefined
  #isEnding = false
  #pauseMs = FIRST_PAUSE_MS

  constructor(options: RuntimeChildOptions) {
    this.#options = options
    this.#pidPath = join(options.dataDir, 'runtime-child.json')
  }

  /** Whether it is ours, and will be there again soon if it is not. */
  get isExpected(): boolean {
    return this.#child !== undefined && !this.#isEnding
  }

  /** Returns when a runtime service is ready. Throws `UsageError` when none can be started. */
  async start(): Promise<void> {
    const { service, log } = this.#options
    await this.#endOfAnEarlierRun()
    if (await service.isReady()) {
      log.info('a runtime service is there already: none is started', { url: service.url })
      return
    }
    const child = this.#spawn()
    const until = performance.now() + READY_WITHIN_MS
    while (!(await service.isReady())) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null
      if (!hasEnded && performance.now() < until) await Bun.sleep(LOOK_MS)
      else {
        this.#isEnding = true
        child.kill()
        const why = hasEnded ? `it ended at once (${howEnded(child)})` : `it was not ready within ${READY_WITHIN_MS} ms`
        throw new UsageError(`cannot start ${PROGRAM} at ${service.url}: ${why}; its own words are above`)
      }
    }
  }

  /** Ends it, if it is ours. What it runs goes on. */
  async stop(): Promise<void> {
    this.#isEnding = true
    const child = this.#child
    if (child === undefined) return
    child.kill('SIGTERM')
    await Promise.race([child.exited, Bun.sleep(END_WITHIN_MS)])
  }

  #spawn(): Bun.Subprocess {
    const { service, dataDir, env, token, log } = this.#options
    const address = startAddress(service.url)
    if (typeof address === 'string') {
      throw new UsageError(`--with-runtime cannot start a runtime service at ${service.url}: ${address}`)
    }
    const path = findSibling(PROGRAM, env.PATH)
    if (path === null) throw new UsageError(`--with-runtime: ${siblingNotFound(PROGRAM)}`)
    const { SERVICE_TOKEN: _, ...rest } = env
    const startedAt = performance.now()
    let child: Bun.Subprocess
    try {
      child = Bun.spawn([path, 'serve', '--listen-addr', address.listen, '--data-dir', dataDir], {
        env: { ...rest, ...(token !== undefined && { SERVICE_TOKEN: token }) },
        detached: true, // Ctrl-C in a terminal is for us: it ends once our tasks have
        ...{ stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' },
      })
    } catch (error) {
      throw new UsageError(`cannot start ${path}: ${messageOf(error)}`)
    }
    this.#child = child
    this.#note(child.pid)
    log.info('started a runtime service', { path, runtime_pid: child.pid, url: service.url })
    child.exited.then(() => this.#ended(child, performance.now() - startedAt))
    return child
  }

  #ended(child: Bun.Subprocess, lifeMs: number): void {
    if (this.#isEnding) return
    if (lifeMs > LONG_LIFE_MS) this.#pauseMs = FIRST_PAUSE_MS
    this.#options.log.error('the runtime service has ended, it is started again', {
      ...{ how: howEnded(child), pause_ms: this.#pauseMs },
    })
    setTimeout(() => {
      if (this.#isEnding) return
      try {
        this.#spawn()
      } catch (error) {
        this.#options.log.error('cannot start the runtime service again', { cause: messageOf(error) })
        this.#ended(child, 0)
      }
    }, this.#pauseMs)
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS)
  }

  /** Should we be killed, the next start finds it by this. */
  #note(pid: number): void {
    const identity = identify(pid)
    if (identity !== undefined) writeFileSync(this.#pidPath, JSON.stringify(identity), { mode: 0o600 })
  }

  async #endOfAnEarlierRun(): Promise<void> {
    const identity = readIdentity(this.#pidPath)
    if (identity === undefined || !isStillThere(identity)) return
    this.#options.log.info('ending the runtime service of an earlier run', { runtime_pid: identity.pid })
    process.kill(identity.pid, 'SIGTERM')
    const until = performance.now() + END_WITHIN_MS
    while (isStillThere(identity) && performance.now() < until) await Bun.sleep(LOOK_MS)
  }
}

const howEnded = ({ exitCode, signalCode }: Bun.Subprocess): string =>
  signalCode === null ? `exit code ${exitCode}` : String(signalCode)

function readIdentity(path: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessIdentity
  } catch {
    return undefined // none was started, or it was cut off by a crash: then the one that runs is found by its address
  }
}

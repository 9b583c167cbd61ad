/**
 * A runtime service that control starts as its child.
 *
 * It is started where none answers, started again when it ends, and told to end when this service does; tasks that it
 * runs go on and are found again. Should this service be killed, it runs on, and the next start takes its place: a
 * restart of it harms no task.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isDirectoryLocked, LOCK_FILES } from '../../../shared/directory-lock.ts'
import { messageOf, UsageError } from '../../../shared/errors.ts'
import { GrowingPause } from '../../../shared/growing-pause.ts'
import type { Log } from '../../../shared/log.ts'
import { identify, isProcessIdentity, isStillThere, type ProcessIdentity } from '../../../shared/processes.ts'
import { findSibling, siblingNotFound } from '../../../shared/sibling.ts'
import { startAddress } from '../../../shared/start-address.ts'
import { type OwnToken, ownRuntimeToken } from './own-token.ts'
import type { RuntimeService } from './service.ts'

const PROGRAM = 'taskmill-runtime'

/** Milliseconds that it may take to be ready, or to end. */
const READY_WITHIN_MS = 15_000
const END_WITHIN_MS = 10_000

/** Milliseconds between two looks while it starts or ends. */
const LOOK_MS = 10

/** Milliseconds before it is started again. After a minute of life the pauses begin again with the first. */
const RESTART_PAUSES = { firstMs: 100, longestMs: 10_000 }
const LONG_LIFE_MS = 60_000

export interface RuntimeChildOptions {
  readonly service: RuntimeService
  readonly dataDir: string
  /** All of it goes to the child, but for the token and what the child is told of this service. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The token that the child is to want, where the user sets one. Without it the child has one of its own. */
  readonly token: string | undefined
  /** Whether this service wants a token itself. */
  readonly hasControlToken: boolean
  /** Flags that it has beside its address and data directory. */
  readonly flags: readonly string[]
  readonly log: Log
}

export class RuntimeChild {
  readonly #options: RuntimeChildOptions
  readonly #pidPath: string
  #child: Bun.Subprocess | undefined
  #isEnding = false
  readonly #pause = new GrowingPause(RESTART_PAUSES)

  constructor(options: RuntimeChildOptions) {
    this.#options = options
    this.#pidPath = join(options.dataDir, 'runtime-child.json')
  }

  /** Whether it is ours, and will be there again soon if it is not. */
  get isExpected(): boolean {
    return this.#child !== undefined && !this.#isEnding
  }

  /**
   * Returns when a runtime service is ready, or once `signal` is aborted: `stop` then ends what was started. Throws
   * `UsageError` when none can be started.
   */
  async start(signal: AbortSignal): Promise<void> {
    const { service, dataDir, token, log } = this.#options
    await this.#endOfAnEarlierRun(signal)
    const isThere = await service.isReady()
    if (signal.aborted) return
    if (isThere) {
      // One that an earlier run started: no other service has our data directory, or is shown the token in it.
      if (token === undefined && isDirectoryLocked(dataDir, LOCK_FILES.runtime)) this.#ownToken()
      log.info('a runtime service is there already: none is started', { url: service.url })
      return
    }
    const child = this.#spawn()
    const until = performance.now() + READY_WITHIN_MS
    while (!(await service.isReady()) && !signal.aborted) {
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
    const { service, dataDir, env, token, hasControlToken, flags, log } = this.#options
    const address = startAddress(service.url)
    if (typeof address === 'string') {
      throw new UsageError(`--with-runtime cannot start a runtime service at ${service.url}: ${address}`)
    }
    const path = findSibling(PROGRAM, env.PATH)
    if (path === null) throw new UsageError(`--with-runtime: ${siblingNotFound(PROGRAM)}`)
    const { SERVICE_TOKEN: _, ...rest } = env
    const own = token === undefined ? this.#ownToken() : undefined
    const startedAt = performance.now()
    let child: Bun.Subprocess
    try {
      const tokenFile = own === undefined ? [] : ['--token-file', own.path]
      child = Bun.spawn(
        [path, 'serve', '--listen-addr', address.listen, '--data-dir', dataDir, ...tokenFile, ...flags],
        {
          env: {
            ...rest,
            ...(token !== undefined && { SERVICE_TOKEN: token }),
            SERVICE_CONTROL_ACCESS: hasControlToken ? 'token' : 'open',
          },
          detached: true, // Ctrl-C in a terminal is for us: it ends once our tasks have
          ...{ stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' },
        },
      )
    } catch (error) {
      throw new UsageError(`cannot start ${path}: ${messageOf(error)}`)
    }
    this.#child = child
    this.#note(child.pid)
    log.info('started a runtime service', {
      ...{ path, runtime_pid: child.pid, url: service.url },
      ...(own !== undefined && { token_file: own.path }),
    })
    child.exited.then(() => this.#ended(child, performance.now() - startedAt))
    return child
  }

  /** Made where there is none, and read again whenever the child is started: calls show what the file says. */
  #ownToken(): OwnToken {
    const { service, dataDir } = this.#options
    const own = ownRuntimeToken(dataDir)
    service.authorize(own.token)
    return own
  }

  #ended(child: Bun.Subprocess, lifeMs: number): void {
    if (this.#isEnding) return
    if (lifeMs > LONG_LIFE_MS) this.#pause.reset()
    const pauseMs = this.#pause.next()
    this.#options.log.error('the runtime service has ended, it is started again', {
      ...{ how: howEnded(child), pause_ms: pauseMs },
    })
    setTimeout(() => {
      if (this.#isEnding) return
      try {
        this.#spawn()
      } catch (error) {
        this.#options.log.error('cannot start the runtime service again', { cause: messageOf(error) })
        this.#ended(child, 0)
      }
    }, pauseMs)
  }

  /** Should we be killed, the next start finds it by this. */
  #note(pid: number): void {
    const identity = identify(pid)
    if (identity !== undefined) writeFileSync(this.#pidPath, JSON.stringify(identity), { mode: 0o600 })
  }

  async #endOfAnEarlierRun(signal: AbortSignal): Promise<void> {
    const identity = readIdentity(this.#pidPath)
    if (identity === undefined || !isStillThere(identity)) return
    this.#options.log.info('ending the runtime service of an earlier run', { runtime_pid: identity.pid })
    process.kill(identity.pid, 'SIGTERM')
    const until = performance.now() + END_WITHIN_MS
    while (isStillThere(identity) && performance.now() < until && !signal.aborted) await Bun.sleep(LOOK_MS)
  }
}

const howEnded = ({ exitCode, signalCode }: Bun.Subprocess): string =>
  signalCode === null ? `exit code ${exitCode}` : String(signalCode)

function readIdentity(path: string): ProcessIdentity | undefined {
  try {
    const identity: unknown = JSON.parse(readFileSync(path, 'utf8'))
    return isProcessIdentity(identity) ? identity : undefined
  } catch {
    return undefined // none was started, or it was cut off by a crash: then the one that runs is found by its address
  }
}

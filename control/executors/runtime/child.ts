/**
 * The runtime service as a child process of control (`--with-runtime`).
 *
 * Control starts it if no runtime service answers, restarts it when it exits, and stops it at its own end. Its tasks
 * continue meanwhile. It starts while control reads its log, so that neither waits for the other. If control is killed, the child continues, and the next start of control replaces it. A restart
 * of the runtime service harms no task.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf, UsageError } from '../../../shared/contract/errors.ts'
import { isDirectoryLocked, LOCK_FILES } from '../../../shared/files/directory-lock.ts'
import type { ServiceClient } from '../../../shared/http/client.ts'
import { GrowingPause } from '../../../shared/http/growing-pause.ts'
import { socketPathOf } from '../../../shared/http/socket-address.ts'
import { startAddress } from '../../../shared/http/start-address.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { identify, isProcessIdentity, isStillThere, type ProcessIdentity } from '../../../shared/process/processes.ts'
import { findSibling, siblingNotFound } from '../../../shared/process/sibling.ts'
import { type OwnToken, ownRuntimeToken } from './own-token.ts'
import { clientOf, isReady, type RuntimeService } from './service.ts'

const PROGRAM = 'taskmill-runtime'

/** Milliseconds that the child may take to become ready, or to end. */
const READY_WITHIN_MS = 15_000
const END_WITHIN_MS = 10_000

/** Milliseconds between two checks while the child starts or ends. */
const LOOK_MS = 10

/** Pauses before a restart. After a minute of life they begin again with the shortest. */
const RESTART_PAUSES = { firstMs: 100, longestMs: 10_000 }
const LONG_LIFE_MS = 60_000

export interface RuntimeChildOptions {
  /** Where it listens. */
  readonly url: string
  readonly dataDir: string
  /** The environment of the child, except for tokens and settings of control. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** The token of the child, if the user sets one. Otherwise the child gets its own. */
  readonly token: string | undefined
  /** Whether control requires a token. */
  readonly hasControlToken: boolean
  /** Where control listens. Undefined if it picks a port. */
  readonly controlAddr: string | undefined
  /** Flags of the child other than address and data directory. */
  readonly flags: readonly string[]
  readonly log: Log
}

export class RuntimeChild {
  readonly #options: RuntimeChildOptions
  readonly #pidPath: string
  readonly #client: ServiceClient
  /** What sends the calls to it. */
  #service: RuntimeService | undefined
  #own: OwnToken | undefined
  /** False during the start: a child that ends then is not started again. */
  #wasReady = false
  #child: Bun.Subprocess | undefined
  #isEnding = false
  readonly #pause = new GrowingPause(RESTART_PAUSES)

  constructor(options: RuntimeChildOptions) {
    this.#options = options
    this.#pidPath = join(options.dataDir, 'runtime-child.json')
    this.#client = clientOf({ url: options.url, token: undefined }) // asks for nothing that needs one
  }

  /** Whether control manages the runtime service, so that an unreachable one will be restarted. */
  get isExpected(): boolean {
    return this.#child !== undefined && !this.#isEnding
  }

  /** Further calls of `service` have the token of the child. */
  serve(service: RuntimeService): void {
    this.#service = service
    if (this.#own !== undefined) service.authorize(this.#own)
  }

  /** Starts the child, unless a runtime service is there. Returns at once when `signal` aborts. Throws `UsageError`. */
  async start(signal: AbortSignal): Promise<void> {
    const { dataDir, token, log } = this.#options
    await this.#endOfAnEarlierRun(signal)
    const isThere = await isReady(this.#client)
    if (signal.aborted) return
    if (!isThere) this.#spawn()
    else {
      // A child of an earlier run: no other service uses our data directory or knows the token in it.
      if (token === undefined && isDirectoryLocked(dataDir, LOCK_FILES.runtime)) this.#ownToken()
      log.info('a runtime service is there already: none is started', { url: this.#client.shownUrl })
    }
  }

  /** Returns when the child is ready, or when `signal` aborts; then `stop` ends it. Throws `UsageError` if it does not become ready. */
  async ready(signal: AbortSignal): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    const until = performance.now() + READY_WITHIN_MS
    while (!(await isReady(this.#client)) && !signal.aborted) {
      const hasEnded = child.exitCode !== null || child.signalCode !== null
      if (!hasEnded && performance.now() < until) await Bun.sleep(LOOK_MS)
      else {
        this.#isEnding = true
        child.kill()
        const why = hasEnded ? `it ended at once (${howEnded(child)})` : `it was not ready within ${READY_WITHIN_MS} ms`
        throw new UsageError(`cannot start ${PROGRAM} at ${this.#client.shownUrl}: ${why}; its own words are above`)
      }
    }
    this.#wasReady = true
  }

  /** Ends the child, if there is one. Its tasks continue. */
  async stop(): Promise<void> {
    this.#isEnding = true
    const child = this.#child
    if (child === undefined) return
    child.kill('SIGTERM')
    await Promise.race([child.exited, Bun.sleep(END_WITHIN_MS)])
  }

  #spawn(): void {
    const { dataDir, env, token, hasControlToken, controlAddr, flags, log } = this.#options
    const { shownUrl: url } = this.#client
    const address = socketPathOf(url) === undefined ? startAddress(url) : { listen: url }
    if (typeof address === 'string') {
      throw new UsageError(`--with-runtime cannot start a runtime service at ${url}: ${address}`)
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
            ...(controlAddr !== undefined && { SERVICE_CONTROL_ADDR: controlAddr }),
          },
          detached: true, // Ctrl-C must reach control only, which ends the child after its own tasks
          ...{ stdin: 'ignore', stdout: 'inherit', stderr: 'inherit' },
        },
      )
    } catch (error) {
      throw new UsageError(`cannot start ${path}: ${messageOf(error)}`)
    }
    this.#child = child
    this.#note(child.pid)
    log.info('started a runtime service', {
      ...{ path, runtime_pid: child.pid, url },
      ...(own !== undefined && { token_file: own.path }),
    })
    child.exited.then(() => this.#ended(child, performance.now() - startedAt))
  }

  /**
   * Creates the token if it is missing. Reads it at each start of the child, so that calls use the token in the file.
   */
  #ownToken(): OwnToken {
    this.#own = ownRuntimeToken(this.#options.dataDir)
    this.#service?.authorize(this.#own)
    return this.#own
  }

  #ended(child: Bun.Subprocess, lifeMs: number): void {
    if (this.#isEnding || !this.#wasReady) return
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

  /** Records the child. After a kill of control, the next start finds it by this. */
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
    return undefined // no record, or a torn one: a running child is still found by its address
  }
}

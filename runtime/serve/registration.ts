/**
 * Registers this service with a control service (`--register`), so that control sends it tasks.
 *
 * The registration is repeated at intervals. It changes nothing while control knows this service, and makes up for a
 * control service that starts later, or has forgotten this one.
 */
import { hostname } from 'node:os'
import { UsageError } from '../../shared/contract/errors.ts'
import { RUNTIME_NAME_RULE, type RuntimeLabels } from '../../shared/contract/runtime-names.ts'
import { CallFailed, ServiceClient } from '../../shared/http/client.ts'
import { GrowingPause } from '../../shared/http/growing-pause.ts'
import { socketPathOf } from '../../shared/http/socket-address.ts'
import type { Log } from '../../shared/logs/log.ts'
import { newTraceId } from '../../shared/logs/trace.ts'
import { isRuntimeName } from '../../shared/settings/runtime-entry.ts'

/** Milliseconds between two registrations. */
const EVERY_MS = 10_000

/** Pauses after a failure, in milliseconds. */
const PAUSES = { firstMs: 500, longestMs: EVERY_MS }

/** Milliseconds for the answer. */
const ANSWER_MS = 10_000

export interface RegistrationOptions {
  /** Base URL of the control service. */
  readonly controlUrl: string
  /** The token that control requires. */
  readonly token: string | undefined
  /** The token that this service requires. */
  readonly ownToken: string | undefined
  readonly name: string
  /** Base URL of this service, as control reaches it. */
  readonly url: string
  readonly labels: RuntimeLabels
  readonly log: Log
}

export class Registration {
  readonly #options: RegistrationOptions
  readonly #client: ServiceClient
  readonly #pause = new GrowingPause(PAUSES)
  #timer: Timer | undefined
  #isStopped = false
  /** The last failure that was logged; undefined after a success. */
  #fault: string | undefined
  #isKnown = false

  constructor(options: RegistrationOptions) {
    this.#options = options
    this.#client = new ServiceClient(
      {
        ...{
          name: 'control',
          start: 'taskmill-control',
          urlVariable: 'SERVICE_RUNTIME_REGISTER',
          urlFlag: '--register',
        },
        tokenVariable: 'SERVICE_CONTROL_TOKEN',
      },
      { url: options.controlUrl, token: options.token },
    )
  }

  /** Registers now, and again and again until `stop`. */
  start(): void {
    void this.#register()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  async #register(): Promise<void> {
    const { name, url, labels, ownToken, log } = this.#options
    let pauseMs = EVERY_MS
    try {
      const body = new TextEncoder().encode(JSON.stringify({ name, url, labels, token: ownToken }))
      const headers = { 'x-trace-id': newTraceId() }
      await this.#client.call({ method: 'POST', path: '/runtimes', body, headers, timeoutMs: ANSWER_MS })
      if (this.#isStopped) return
      if (!this.#isKnown)
        log.info('registered with the control service', { runtime: name, url, control: this.#client.shownUrl })
      this.#isKnown = true
      this.#fault = undefined
      this.#pause.reset()
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      if (this.#isStopped) return
      if (this.#fault !== error.message) {
        log.warn('cannot register with the control service', { runtime: name, url, cause: error.message })
      }
      this.#isKnown = false
      this.#fault = error.message
      pauseMs = this.#pause.next()
    }
    this.#timer = setTimeout(() => void this.#register(), pauseMs)
  }
}

/** Throws `UsageError` if control would refuse the name, or could not call the address. */
export function ensureRegistrable(config: {
  readonly runtimeId: string
  readonly advertise: string
  readonly listenAddr: string
}): void {
  registeredName(config.runtimeId)
  if (config.advertise !== '' || socketPathOf(config.listenAddr) === undefined) return
  throw new UsageError('--register needs --advertise, because control cannot call the Unix socket of --listen-addr')
}

/** Throws `UsageError` for labels that nobody would see. */
export function refuseUnregisteredLabels(labels: RuntimeLabels): void {
  const [name] = Object.keys(labels)
  if (name === undefined) return
  const text = `--label ${name} (or SERVICE_RUNTIME_LABELS) has no effect without --register`
  const remedy = `give --register CONTROL_URL, or the labels to control: --runtime-url NAME=URL,${name}, or taskmill runtimes add NAME URL --label ${name}`
  throw new UsageError(`${text}: ${remedy}`)
}

/** The name to register: `--runtime-id`, else the host name. Throws `UsageError` if control would refuse it. */
export function registeredName(runtimeId: string): string {
  const name = runtimeId === '' ? hostname() : runtimeId
  if (isRuntimeName(name)) return name
  throw new UsageError(`--register needs a --runtime-id of ${RUNTIME_NAME_RULE}, got ${JSON.stringify(name)}`)
}

/** Answers every request with 503 while a replica waits for the database, and until it is registered there. */
import type { ErrorResponse } from '../../shared/contract/control.ts'
import { type ListenAddress, listenOptions } from '../../shared/http/listen.ts'

/** Seconds after which a caller may ask again. */
const RETRY_AFTER_SECONDS = 1

export class StartingServer {
  #server: ReturnType<typeof Bun.serve> | undefined

  /** Does nothing for port 0, which nobody knows yet. */
  start(address: ListenAddress): void {
    if ('port' in address && address.port === 0) return
    const body: ErrorResponse = { error: 'starting' }
    const answer = () => Response.json(body, { status: 503, headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } })
    this.#server ??= Bun.serve({ ...listenOptions(address), fetch: answer })
  }

  async stop(): Promise<void> {
    await this.#server?.stop(true)
    this.#server = undefined
  }
}

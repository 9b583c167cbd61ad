/** Answers every request with 503 while another replica is active. */
import type { ErrorResponse } from '../../shared/contract/control.ts'
import type { ListenAddress } from '../../shared/http-service.ts'

/** Seconds after which a caller may ask again. */
const RETRY_AFTER_SECONDS = 1

export class StandbyServer {
  #server: ReturnType<typeof Bun.serve> | undefined

  start({ hostname, port }: ListenAddress): void {
    const body: ErrorResponse = { error: 'this replica is a standby: another one is active' }
    this.#server ??= Bun.serve({
      ...{ hostname, port, reusePort: false },
      fetch: () => Response.json(body, { status: 503, headers: { 'retry-after': String(RETRY_AFTER_SECONDS) } }),
    })
  }

  async stop(): Promise<void> {
    await this.#server?.stop(true)
    this.#server = undefined
  }
}

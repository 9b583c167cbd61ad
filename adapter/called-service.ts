/**
 * The control service that the client calls, and its token.
 *
 * The address is that of `--url` or `SERVICE_URL`, else of the running services of `taskmill up`, else the default. The
 * token is `SERVICE_TOKEN`. Without it the services of `taskmill up` get their own, however their address was found.
 */
import { ownServices } from './own-services/record.ts'
import type { Environment } from './own-services/state-dir.ts'

export interface CalledService {
  /** Without a final slash. */
  readonly url: string
  readonly token: string | undefined
  /** Whether `taskmill up` started it. */
  readonly isOwn: boolean
}

/** `given` is the address that a flag or a variable gives. */
export function calledService(given: string | undefined, usual: string, env: Environment): CalledService {
  const own = ownServices(env)
  const url = (given ?? own?.url ?? usual).replace(/\/+$/, '')
  const isOwn = own !== undefined && own.url === url
  return { url, token: env.SERVICE_TOKEN || (isOwn ? own.token : undefined), isOwn }
}

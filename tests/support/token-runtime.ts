/** A runtime service that requires a token. Its tasks must have ended by themselves at the end of a test. */
import { type ServiceOptions, type StartedService, startService } from './service.ts'

export const TOKEN = 'sesame-42'
export const WITH_TOKEN = { authorization: `Bearer ${TOKEN}` }

interface TokenRuntime extends AsyncDisposable, StartedService {
  readonly fetch: (path: string, init?: RequestInit) => Promise<Response>
}

export async function startTokenRuntime(
  options: ServiceOptions = { env: { SERVICE_TOKEN: TOKEN } },
): Promise<TokenRuntime> {
  const service = await startService('taskmill-runtime', ['serve', '--listen-addr', '127.0.0.1:0'], options)
  return {
    ...service,
    fetch: (path, init) => fetch(service.url + path, init),
    [Symbol.asyncDispose]: service.dispose,
  }
}

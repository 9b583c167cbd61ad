/** Serves an app in this process, as the services do. */
import type { AnyElysia } from 'elysia'
import { type HttpServer, listen } from '../../shared/http/listen.ts'
import { serveApp } from '../../shared/http/serve-app.ts'

/** On a port of its own. */
export async function servedApp(app: AnyElysia, hostname = '127.0.0.1'): Promise<HttpServer> {
  const server = await listen({ hostname, port: 0 }, 'addr')
  serveApp(app, server)
  return server
}

/** Answers the requests to a server with the routes of an Elysia app. */
import type { AnyElysia } from 'elysia'
import type { HttpServer } from './listen.ts'
import { routesInOnePass } from './routes.ts'

/**
 * From now on `app` answers. Elysia composes its handler of all other requests, such as 404, 405 and wildcards, with the first
 * of them.
 *
 * `app.listen` would start a second server. It also composes that handler at once, and compiles and maps all routes twice,
 * which takes 1.5 ms of CPU time of a start.
 */
export function serveApp(app: AnyElysia, { server, release }: HttpServer): void {
  const fetch = (request: Request) => app.fetch(request)
  app.server = server
  server.reload({ routes: routesInOnePass(app), fetch })
  release(fetch)
  Bun.unsafe.setJITPolicy(1) // until now START_JIT_POLICY of scripts/build.ts
}

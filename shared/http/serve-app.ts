/** Answers the requests to a server with the routes of an Elysia app. */
import type { BunRequest } from 'bun'
import type { AnyElysia } from 'elysia'
import type { HttpServer } from './listen.ts'
import { pathOf } from './request-url.ts'
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
  const routes = routesInOnePass(app)
  server.reload({ routes, fetch })
  release((request) => byRoute(routes, request) ?? fetch(request))
  Bun.unsafe.setJITPolicy(1) // until now START_JIT_POLICY of scripts/build.ts
}

/**
 * The answer of the route of a path without parameters, to a request that came before there were routes. Undefined if there is
 * none. `app.fetch` would compose its handler first, which takes 3 of 50 ms of CPU time of a start of the runtime service.
 */
function byRoute(routes: ReturnType<typeof routesInOnePass>, request: Request) {
  const path = pathOf(request)
  const ofPath = path.includes(':') ? undefined : routes[path]
  return ofPath !== undefined && Object.hasOwn(ofPath, request.method)
    ? ofPath[request.method]!(request as BunRequest)
    : undefined
}

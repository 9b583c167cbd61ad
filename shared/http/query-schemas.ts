/** The declared query parameters of the routes of a service. */
import type { AnyElysia } from 'elysia'
import { checkQuery, type QueryParameters } from './query-parameters.ts'

export class QuerySchemas {
  readonly #app: AnyElysia
  /** By method and path. */
  readonly #known = new Map<string, QueryParameters>()

  constructor(app: AnyElysia) {
    this.#app = app
  }

  /** Refuses query parameters that are not in the `query` schema of the route. The route that answers 405 takes any. */
  check(request: Request, route: string): void {
    const method = request.method === 'HEAD' ? 'GET' : request.method
    const schema = this.#known.get(`${method} ${route}`) ?? this.#lookUp(method, route)
    if (schema !== undefined) checkQuery(request.url, schema)
  }

  /** Looks at all routes, which takes 2 µs. */
  #lookUp(method: string, route: string): QueryParameters | undefined {
    const found = this.#app.routes.find((candidate) => candidate.path === route && candidate.method === method)
    if (found === undefined) return undefined
    const { query } = found.hooks as { query?: { properties?: QueryParameters } }
    const schema = query?.properties ?? {}
    this.#known.set(`${method} ${route}`, schema)
    return schema
  }
}

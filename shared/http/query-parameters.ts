/** Checks the names of query parameters against those that the routes of a service declare. */
import type { TSchema } from '@sinclair/typebox'
import type { AnyElysia } from 'elysia'
import { badRequest } from '../contract/errors.ts'
import { didYouMean, isExtension, quoted } from '../request/unknown-names.ts'
import { nearestName } from '../text/nearest-name.ts'

/** The declared query parameters of a route. One that may be repeated has alternatives, one of them an array. */
export type QueryParameters = Readonly<Record<string, TSchema>>

/** Throws 400 for the first parameter of `url` that is unknown, or repeated without being repeatable. */
export function checkQuery(url: string, known: QueryParameters): void {
  const start = url.indexOf('?')
  if (start < 0) return
  const seen = new Set<string>()
  for (const name of namesIn(url.slice(start + 1))) {
    if (isExtension(name)) continue
    if (!Object.hasOwn(known, name)) {
      throw badRequest(`unknown query parameter ${quoted(name)}${didYouMean(nearestName(name, Object.keys(known)))}`)
    }
    if (seen.has(name) && known[name]!.anyOf === undefined) {
      throw badRequest(`query parameter ${quoted(name)} is given twice`)
    }
    seen.add(name)
  }
}

/** The names in a query. `URLSearchParams` takes 5 µs, which most queries, without escapes, do not need. */
function namesIn(query: string): Iterable<string> {
  if (/[%+]/.test(query)) return new URLSearchParams(`?${query}`).keys()
  const names = query.split('&').filter((part) => part !== '')
  return names.map((part) => part.split('=', 1)[0]!)
}

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

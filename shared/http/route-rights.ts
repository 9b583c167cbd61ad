/** Whether a caller with a name may use a route. The description of each route says what that takes. */
import type { AnyElysia } from 'elysia'
import type { RouteRight } from '../contract/rights.ts'
import { type Caller, hasRight, lacking } from './callers.ts'
import { descriptionIn } from './openapi/route.ts'

export class RouteRights {
  readonly #app: AnyElysia
  /** By method and path. */
  readonly #rights = new Map<string, RouteRight>()

  constructor(app: AnyElysia) {
    this.#app = app
  }

  /** Throws 403. */
  ensure(caller: Caller, method: string, route: string): void {
    const right = this.#rightOf(method === 'HEAD' ? 'GET' : method, route)
    if (right === 'none' || right === 'any') return
    // Which tasks are its own is known where they are cancelled.
    if (right === 'service' || !hasRight(caller, right === 'cancel' ? 'cancel_own' : right))
      throw lacking(caller, right)
  }

  #rightOf(method: string, route: string): RouteRight {
    const name = `${method} ${route}`
    const known = this.#rights.get(name)
    if (known !== undefined) return known
    const found = this.#app.routes.find((candidate) => candidate.path === route && candidate.method === method)
    // The route that answers 405 tells nothing. One that declares no right is for the service alone.
    const right = found === undefined ? 'any' : (descriptionIn(found.hooks)?.right ?? 'service')
    this.#rights.set(name, right)
    return right
  }
}

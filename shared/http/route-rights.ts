/** Whether a caller with a name may use a route. The description of each route says what that takes. */
import type { AnyElysia } from 'elysia'
import type { RouteRight } from '../contract/rights.ts'
import { type Caller, ensureOfService, hasRight, lacking } from './callers.ts'
import { descriptionIn } from './openapi/route.ts'

interface RouteRule {
  readonly right: RouteRight
  readonly isOfService: boolean
}

export class RouteRights {
  readonly #app: AnyElysia
  /** By method and path. */
  readonly #rules = new Map<string, RouteRule>()

  constructor(app: AnyElysia) {
    this.#app = app
  }

  /** Throws 403. */
  ensure(caller: Caller, method: string, route: string): void {
    const { right, isOfService } = this.#ruleOf(method === 'HEAD' ? 'GET' : method, route)
    if (right === 'none' || right === 'any') return
    // Which tasks are its own is known where they are cancelled.
    if (right === 'service' || !hasRight(caller, right === 'cancel' ? 'cancel_own' : right))
      throw lacking(caller, right)
    if (isOfService) ensureOfService(`${method} ${route}`, caller)
  }

  #ruleOf(method: string, route: string): RouteRule {
    const name = `${method} ${route}`
    const known = this.#rules.get(name)
    if (known !== undefined) return known
    const found = this.#app.routes.find((candidate) => candidate.path === route && candidate.method === method)
    const { right = 'service', isOfService = false } = (found && descriptionIn(found.hooks)) ?? {}
    // The route that answers 405 tells nothing. One that declares no right is for the service alone.
    const rule: RouteRule = found === undefined ? { right: 'any', isOfService: false } : { right, isOfService }
    this.#rules.set(name, rule)
    return rule
  }
}

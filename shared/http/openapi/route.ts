/**
 * The description of a route, declared where the route is added. `/openapi.json`, `/docs` and the tables of `docs/` are
 * made from it, and tests check real answers against it.
 *
 * Only `query` takes part in a request: the route accepts the parameters in it and no others. The rest is carried along
 * as `detail`, so describing a route costs no request anything.
 */

import type { Static, TObject, TProperties, TSchema } from '@sinclair/typebox'
import type { RouteRight } from '../../contract/rights.ts'
import { Type } from '../../contract/schema-builder.ts'

/** A successful answer. */
export interface Answer {
  /** A sentence on the answer. */
  readonly description: string
  /** Absent for an answer without a body, and for one that is no JSON. */
  readonly schema?: TSchema
  /** Media type of a body. */
  readonly type?: string
  /** A second media type with a body that is no JSON. */
  readonly otherType?: string
  /** Headers besides `X-Trace-ID`: name to a sentence. */
  readonly headers?: Readonly<Record<string, string>>
  /** Routes that take a field of the body as a parameter of their path: summary to the parameter and the field. */
  readonly links?: Readonly<Record<string, { readonly parameter: string; readonly field: string }>>
}

export interface RouteDescription<Q extends TProperties = TProperties> {
  /** The heading under which the documentation has the route. */
  readonly section: string
  /** A few words in the imperative, unique in the service: the name of the operation is made from it. */
  readonly summary: string
  /** Further notes for callers. */
  readonly description?: string
  /** What a token with a name needs. Absent: only the token of the service is enough. */
  readonly right?: RouteRight
  /** Whether it is about the whole service: a token with a tenant is refused. */
  readonly isOfService?: boolean
  /** Parameters of the path: name to a sentence. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Q
  /** Request headers that the route reads: name to a sentence. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: TSchema
  /** Media type of a body that is no JSON. */
  readonly bodyType?: string
  /** A body that the service accepts. Default: none. */
  readonly example?: unknown
  readonly answers: Readonly<Record<number, Answer>>
  /** Refusals by status: when a caller gets it. */
  readonly errors?: Readonly<Record<number, string>>
  /** The body of refusals of a protocol that the route speaks. Those of the service have the usual body here, too. */
  readonly errorSchema?: TSchema
}

/** An answer with a JSON body. */
export const json = (schema: TSchema, description: string, headers?: Answer['headers']): Answer => ({
  description,
  schema,
  type: 'application/json',
  ...(headers !== undefined && { headers }),
})

/** An answer with a body that is no JSON. */
export const other = (type: string, description: string, headers?: Answer['headers']): Answer => ({
  description,
  type,
  ...(headers !== undefined && { headers }),
})

/** An answer without a body. */
export const empty = (description: string): Answer => ({ description })

/** A query parameter that is read as a whole number. The server hands parameters on as text, so the route reads it. */
export const wholeNumber = (minimum: number, maximum: number, description: string) =>
  Type.Optional(Type.String({ description, value: Type.Integer({ minimum, maximum }) }))

/** A query parameter that may be repeated, or hold several values with commas between them. */
export const repeatable = (description: string, values?: readonly string[]) =>
  Type.Optional(
    Type.Union([Type.String(), Type.Array(Type.String())], {
      description,
      value: Type.Array(values === undefined ? Type.String() : oneOf(values)),
    }),
  )

/** A query parameter with one of a few values, which the route checks. */
export const choice = (values: readonly string[], description: string) =>
  Type.Optional(Type.String({ description, value: oneOf(values) }))

/** A query parameter that is true, also without a value, or false. */
export const truth = (description: string) => choice(['true', 'false', '1', '0', ''], description)

/** A query parameter with any text. */
export const anyText = (description: string) => Type.Optional(Type.String({ description }))

const oneOf = (values: readonly string[]) => Type.Union(values.map((value) => Type.Literal(value)))

/** Options of an Elysia route: its description, and what of it the server checks. */
export interface RouteHooks<Q extends TProperties> {
  readonly parse: 'none'
  readonly detail: object
  readonly query: TObject<Q>
}

/** The key of our description in the `detail` of a route. */
const KEY = 'described'

/** The options of a route with this description. A body is not parsed: the route reads it with `readBody`. */
export function described<Q extends TProperties = Record<never, never>>(route: RouteDescription<Q>): RouteHooks<Q> {
  const hooks = { parse: 'none' as const, detail: { [KEY]: route } }
  if (route.query === undefined) return hooks as unknown as RouteHooks<Q> // without a query the server parses none
  return { ...hooks, query: Type.Object(route.query, { additionalProperties: true }) }
}

/** The values of a route's query. */
export type QueryOf<Q extends TProperties> = Static<TObject<Q>>

/** A route of an app. */
export interface DescribedRoute {
  readonly method: string
  /** With parameters in braces: `/tasks/{id}`. */
  readonly path: string
  /** Undefined for a route that nobody described. */
  readonly description: RouteDescription | undefined
}

interface AppRoute {
  readonly method: string
  readonly path: string
  readonly hooks: unknown
}

/** The description among the options of a route. */
export const descriptionIn = (hooks: unknown): RouteDescription | undefined =>
  (hooks as { readonly detail?: { readonly [KEY]?: RouteDescription } }).detail?.[KEY]

/**
 * The routes of an app with their descriptions, in the order in which they were added. Leaves out the 405 of other
 * methods.
 */
export const describedRoutes = (app: { readonly routes: readonly AppRoute[] }): DescribedRoute[] =>
  app.routes
    .filter(({ method }) => method !== 'ALL')
    .map(({ method, path, hooks }) => ({
      method,
      path: path.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}'),
      description: descriptionIn(hooks),
    }))

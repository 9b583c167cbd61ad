/** Whether an answer of a service is one that it meant to give: a described one, or a refusal in the form of the contract. */
import type { TSchema } from '@sinclair/typebox'
import type { DescribedRoute } from '../../../shared/http/openapi/route.ts'
import { checkAnswer } from '../answer-check.ts'
import type { PlannedRequest } from './requests.ts'
import type { WireAnswer } from './wire.ts'

/** Refusals that every route may give, besides those in its description. */
const GENERAL_REFUSALS = new Set([400, 401, 403, 404, 405, 413, 414, 431])

/** Refusals of any route, for a target that may mean any. */
const REFUSALS_OF_ROUTES = new Set([...GENERAL_REFUSALS, 406, 409, 415, 416, 422, 429])

/** Refusals of the HTTP server itself, which never reach a route: they have no body. */
const SERVER_REFUSALS = new Set([400, 411, 413, 414, 417, 431, 501, 505])

/** What the runtime service answers when it has no time to look at a path, and control when that service is late. */
const DUE_TO_LATENESS = /looks are under way, without an answer|cannot read the output so far/

export class AnswerOracle {
  readonly #routes: ReadonlyMap<string, DescribedRoute>
  readonly #errorSchema: TSchema

  constructor(routes: readonly DescribedRoute[], errorSchema: TSchema) {
    this.#routes = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]))
    this.#errorSchema = errorSchema
  }

  /** Throws with what is wrong with the answer. */
  check(request: PlannedRequest, { status, headers, body, isWhole }: WireAnswer): void {
    if (status === 0) throw new Error('the connection was closed without an answer')
    const type = headers.get('content-type')?.split(';')[0]
    if (status >= 500 && !(status === 503 && DUE_TO_LATENESS.test(body)))
      throw new Error(`an answer that was not meant: ${status} ${body}`)
    if (SERVER_REFUSALS.has(status) && body === '' && type === undefined) return
    if (!headers.has('x-trace-id')) throw new Error(`${status} without X-Trace-ID: ${body}`)
    if (request.method === 'HEAD') return
    const description = this.#routeOf(request)?.description
    const answer = description?.answers[status]
    if (answer === undefined) {
      if (status < 400) {
        if (description !== undefined) throw new Error(`${status} is not described: ${body}`)
        return
      }
      const isDescribed = description?.errors?.[status] !== undefined
      const general = request.route === undefined ? REFUSALS_OF_ROUTES : GENERAL_REFUSALS
      if (!isDescribed && !general.has(status)) throw new Error(`${status} is not described: ${body}`)
      if (type !== 'application/json') throw new Error(`${status} with a body that is no JSON: ${type} ${body}`)
      const refusal = parsed(body, headers)
      const { errorSchema = this.#errorSchema } = description ?? {}
      checkAnswer('jsonrpc' in refusal ? errorSchema : this.#errorSchema, refusal)
      return
    }
    const types = [answer.type, answer.otherType].map((one) => one?.split(';')[0])
    if (answer.type !== undefined && !types.includes(type)) throw new Error(`${status} as ${type}, described: ${types}`)
    if (answer.type === undefined && body !== '') throw new Error(`${status} with a body: ${body}`)
    if (answer.schema !== undefined && type === 'application/json' && isWhole) {
      checkAnswer(answer.schema, parsed(body, headers))
    }
  }

  /** The route that gets the request: with a faulty method it is another one than that of the plan, or none. */
  #routeOf({ route, method }: PlannedRequest): DescribedRoute | undefined {
    return this.#routes.get(`${method} ${route?.split(' ')[1]}`)
  }
}

/** What is shown of the beginning and the end of a body that is no JSON. */
const SHOWN_CHARACTERS = 200

function parsed(body: string, headers: WireAnswer['headers']): object {
  try {
    return JSON.parse(body) as object
  } catch (error) {
    const ends = `${body.slice(0, SHOWN_CHARACTERS)} ... ${body.slice(-SHOWN_CHARACTERS)}`
    throw new Error(`${error} in ${body.length} characters: ${ends}, headers ${JSON.stringify([...headers])}`)
  }
}

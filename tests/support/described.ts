/** A service whose answers are checked against the descriptions of its routes. */
import { type DescribedRoute, describedRoutes } from '../../shared/http/openapi/route.ts'
import { checkAnswer } from './answer-check.ts'

export class DescribedService {
  readonly routes: readonly DescribedRoute[]
  readonly #url: string
  /** What was seen: `GET /tasks/{id} 200`. */
  readonly seen = new Set<string>()

  constructor(url: string, app: Parameters<typeof describedRoutes>[0]) {
    this.#url = url
    this.routes = describedRoutes(app)
  }

  /** The body of an answer, which must be as described; `values` fill in the parameters of the path. */
  async ask(
    route: string,
    { values = {}, query = '', ...init }: RequestInit & { values?: Record<string, string>; query?: string } = {},
  ): Promise<{ status: number; body: unknown }> {
    const [method, path] = route.split(' ') as [string, string]
    const description = this.routes.find((known) => known.method === method && known.path === path)?.description
    if (description === undefined) throw new Error(`${route} is not described`)
    const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(values[name]!))
    const response = await fetch(`${this.#url}${filled}${query}`, { method, ...init })
    const { status } = response
    const text = await response.text()
    this.seen.add(`${route} ${status}`)
    const answer = description.answers[status]
    if (answer === undefined && description.errors?.[status] === undefined) {
      throw new Error(`${route} answered ${status}, which is not described: ${text}`)
    }
    const type = response.headers.get('content-type')?.split(';')[0]
    const types = [answer?.type, answer?.otherType].map((one) => one?.split(';')[0])
    if (answer?.type !== undefined && !types.includes(type))
      throw new Error(`${route} answered ${type}, expected ${types}`)
    if (type !== 'application/json' || text === '') return { status, body: text }
    const body = JSON.parse(text)
    if (answer?.schema !== undefined) checkAnswer(answer.schema, body)
    return { status, body }
  }

  /** Described successes that no request of the test has seen. */
  unseen(): string[] {
    return this.routes
      .flatMap(({ method, path, description }) =>
        Object.keys(description?.answers ?? {}).map((status) => `${method} ${path} ${status}`),
      )
      .filter((answer) => !this.seen.has(answer))
  }
}

/**
 * How long requests take, by route and by the kind of their answers, for metrics. The time ends when the answer begins: what
 * a stream sends later does not count.
 */
import { Histogram } from '../logs/histogram.ts'
import type { Metric, Sample } from '../logs/prometheus.ts'

/** Seconds. */
const BOUNDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30]

/** The others, which callers can make up, are one series. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE'])

export class HttpTimes {
  /** By method and route, then by the first digit of the status. */
  readonly #routes = new Map<string, { readonly labels: Labels; readonly byKind: Histogram[] }>()

  /** Counts an answer of a route, such as `GET /tasks/:id`, to a request that arrived at `startedAt` of `performance.now()`. */
  timerOf(asked: string, route: string): (startedAt: number, status: number) => void {
    const method = METHODS.has(asked) ? asked : 'other'
    const key = `${method} ${route}`
    const known = this.#routes.get(key)
    const byKind = known?.byKind ?? []
    const labels = { method, route: route.replaceAll(/:(\w+)/g, '{$1}').replace(/\*$/, '{path}') }
    if (known === undefined) this.#routes.set(key, { labels, byKind })
    return (startedAt, status) => {
      const kind = Math.trunc(status / 100)
      byKind[kind] ??= new Histogram(BOUNDS)
      byKind[kind].add((performance.now() - startedAt) / 1_000)
    }
  }

  /** The samples of the routes that were asked for. */
  get samples(): Sample[] {
    return [...this.#routes.values()].flatMap(({ labels, byKind }) =>
      byKind.flatMap((times, kind) => times.samples({ ...labels, status: `${kind}xx` })),
    )
  }
}

type Labels = Readonly<Record<'method' | 'route', string>>

/** The metric of a service. */
export const httpTimesMetric = <S extends { readonly httpTimes: HttpTimes }>(prefix: string): Metric<S> => ({
  name: `${prefix}_http_request_duration_seconds`,
  type: 'histogram',
  help: 'Seconds from the arrival of a request to the beginning of its answer.',
  labels: {
    method: 'GET, POST, ..., other',
    route: 'as in /openapi.json',
    status: '2xx, 3xx, 4xx, 5xx',
    le: BOUNDS.join(', '),
  },
  samples: ({ httpTimes }) => httpTimes.samples,
})

/** A collector of OpenTelemetry: an HTTP server that keeps the spans it gets, and answers as it is told. */
import { until } from './until.ts'

export interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly start: bigint
  readonly end: bigint
  readonly attributes: Readonly<Record<string, string | number>>
  readonly status: { readonly code?: number; readonly message?: string }
}

interface Sent {
  readonly path: string
  readonly headers: Headers
  readonly resource: Readonly<Record<string, string | number>>
  readonly spans: readonly CollectedSpan[]
}

type Attributes = readonly {
  readonly key: string
  readonly value: { readonly stringValue?: string; readonly intValue?: string }
}[]

const valuesOf = (attributes: Attributes) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))

export function startCollector(
  answer: (count: number) => Response | Promise<Response> = () => Response.json({}),
  port = 0,
) {
  const requests: Sent[] = []
  const server = Bun.serve({
    ...{ port, hostname: '127.0.0.1' },
    async fetch(request) {
      const { resourceSpans } = (await request.json()) as {
        resourceSpans: [
          {
            resource: { attributes: Attributes }
            scopeSpans: [
              {
                spans: (CollectedSpan & {
                  attributes: Attributes
                  startTimeUnixNano: string
                  endTimeUnixNano: string
                })[]
              },
            ]
          },
        ]
      }
      const [{ resource, scopeSpans }] = resourceSpans
      const spans = scopeSpans[0].spans.map(({ startTimeUnixNano, endTimeUnixNano, attributes, ...span }) => ({
        ...span,
        ...{ start: BigInt(startTimeUnixNano), end: BigInt(endTimeUnixNano) },
        attributes: valuesOf(attributes as unknown as Attributes),
      }))
      const { pathname } = new URL(request.url)
      requests.push({ path: pathname, headers: request.headers, resource: valuesOf(resource.attributes), spans })
      return answer(requests.length)
    },
  })
  const spans = () => requests.flatMap((request) => request.spans)
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    spans,
    /** Resolves with all spans once there are so many. */
    has: (count: number) => until(spans, ({ length }) => length >= count),
    stop: () => server.stop(true),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
    },
  }
}

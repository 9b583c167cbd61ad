/** Where traces go, from the variables that OpenTelemetry names. */
import { UsageError } from '../../shared/contract/errors.ts'

export interface TracingSettings {
  /** The whole address for traces. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  /** Milliseconds for one request. */
  readonly timeoutMs: number
}

type Environment = Readonly<Record<string, string | undefined>>

const DEFAULT_SERVICE_NAME = 'taskmill-control'
const DEFAULT_TIMEOUT_MS = 10_000
const MAX_TIMEOUT_MS = 60_000

/** `endpoint` is the base address. Undefined if another variable turns traces off. Throws `UsageError`. */
export function tracingSettings(endpoint: string, env: Environment): TracingSettings | undefined {
  if (env.OTEL_SDK_DISABLED?.toLowerCase() === 'true' || env.OTEL_TRACES_EXPORTER === 'none') return undefined
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL || 'http/json'
  if (!protocol.startsWith('http/'))
    throw new UsageError(
      `traces are sent as http/json, not as ${protocol}: unset OTEL_EXPORTER_OTLP_PROTOCOL, or turn traces off with OTEL_TRACES_EXPORTER=none`,
    )
  const own = env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT
  return {
    url: own
      ? addressOf('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', own)
      : `${addressOf('otlp-endpoint', endpoint)}/v1/traces`,
    headers: {
      ...headersOf('OTEL_EXPORTER_OTLP_HEADERS', env),
      ...headersOf('OTEL_EXPORTER_OTLP_TRACES_HEADERS', env),
    },
    serviceName: env.OTEL_SERVICE_NAME || DEFAULT_SERVICE_NAME,
    timeoutMs: timeoutOf(env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT || env.OTEL_EXPORTER_OTLP_TIMEOUT),
  }
}

function addressOf(name: string, text: string): string {
  const url = URL.parse(text)
  const isHttp = url !== null && (url.protocol === 'http:' || url.protocol === 'https:')
  if (isHttp && url.username === '' && url.password === '' && url.hash === '') return url.href.replace(/\/+$/, '')
  throw new UsageError(
    `invalid ${name}: expected an http: or https: address without password, such as http://127.0.0.1:4318`,
  )
}

/** `name=value,name=value`, percent-encoded. No error repeats a value: they are often secrets. */
function headersOf(variable: string, env: Environment): Record<string, string> {
  const fault = new UsageError(`invalid ${variable}: expected name=value,name=value, percent-encoded`)
  const parts = (env[variable] ?? '').split(',').map((part) => part.trim())
  const headers = new Headers()
  for (const part of parts.filter((each) => each !== '')) {
    const at = part.indexOf('=')
    try {
      if (at < 1) throw fault
      headers.set(part.slice(0, at).trim(), decodeURIComponent(part.slice(at + 1).trim()))
    } catch {
      throw fault
    }
  }
  return Object.fromEntries(headers)
}

function timeoutOf(text: string | undefined): number {
  if (!text) return DEFAULT_TIMEOUT_MS
  const ms = /^\d+$/.test(text) ? Number(text) : 0
  if (ms >= 1 && ms <= MAX_TIMEOUT_MS) return ms
  throw new UsageError(`invalid OTEL_EXPORTER_OTLP_TIMEOUT: expected milliseconds from 1 to ${MAX_TIMEOUT_MS}`)
}

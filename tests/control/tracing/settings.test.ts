/** Goal: the variables of OpenTelemetry mean here what they mean elsewhere, and no error repeats a secret. */
import { expect, test } from 'bun:test'
import { tracingSettings } from '../../../control/tracing/settings.ts'

const BASE = 'http://127.0.0.1:4318'

test.each([
  [BASE, {}, { url: `${BASE}/v1/traces`, headers: {}, serviceName: 'taskmill-control', timeoutMs: 10_000 }],
  [`${BASE}/otel/`, {}, { url: `${BASE}/otel/v1/traces` }],
  [BASE, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${BASE}/mine?key=1` }, { url: `${BASE}/mine?key=1` }],
  ['', { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${BASE}/mine` }, { url: `${BASE}/mine` }],
  [
    BASE,
    { OTEL_EXPORTER_OTLP_HEADERS: 'X-Key=a%3Db, authorization=Bearer%20x==,' },
    { headers: { 'x-key': 'a=b', authorization: 'Bearer x==' } },
  ],
  [
    BASE,
    { OTEL_EXPORTER_OTLP_HEADERS: 'a=1,b=2', OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'b=3' },
    { headers: { a: '1', b: '3' } },
  ],
  [BASE, { OTEL_SERVICE_NAME: 'mill' }, { serviceName: 'mill' }],
  [BASE, { OTEL_EXPORTER_OTLP_TIMEOUT: '500' }, { timeoutMs: 500 }],
  [BASE, { OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' }, { url: `${BASE}/v1/traces` }],
])('%s with %j', (endpoint, env, expected) => {
  expect(tracingSettings(endpoint, env)).toMatchObject(expected)
})

test.each([{ OTEL_SDK_DISABLED: 'true' }, { OTEL_TRACES_EXPORTER: 'none' }])('%j turns traces off', (env) => {
  expect(tracingSettings(BASE, env as Record<string, string>)).toBeUndefined()
})

test.each([
  ['collector:4318', {}, 'invalid otlp-endpoint: expected an http: or https: address'],
  ['http://me:secret@host', {}, 'invalid otlp-endpoint'],
  [BASE, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'secret' }, 'invalid OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'],
  [BASE, { OTEL_EXPORTER_OTLP_HEADERS: 'secret' }, 'invalid OTEL_EXPORTER_OTLP_HEADERS: expected name=value'],
  [BASE, { OTEL_EXPORTER_OTLP_HEADERS: 'a=%zzsecret' }, 'invalid OTEL_EXPORTER_OTLP_HEADERS'],
  [BASE, { OTEL_EXPORTER_OTLP_HEADERS: 'a b=secret' }, 'invalid OTEL_EXPORTER_OTLP_HEADERS'],
  [BASE, { OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'a=secret%0Ab' }, 'invalid OTEL_EXPORTER_OTLP_TRACES_HEADERS'],
  [BASE, { OTEL_EXPORTER_OTLP_TIMEOUT: '0' }, 'expected milliseconds from 1 to 60000'],
  [BASE, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'http/json, not as grpc: unset OTEL_EXPORTER_OTLP_PROTOCOL'],
])('%s with %j is refused', (endpoint, env, message) => {
  const attempt = () => tracingSettings(endpoint, env as Record<string, string>)
  expect(attempt).toThrow(message)
  expect(attempt).not.toThrow('secret')
})

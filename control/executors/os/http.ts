/**
 * Makes one HTTP request: `{status_code, body, headers, truncated}`. A status of 400 or more fails the task and keeps
 * the result. With `save_to` a body goes to a file instead: `{..., body: "", saved_to, bytes_written}`. Each URL, also that
 * of a redirect, passes the guard of addresses.
 */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Static } from '@sinclair/typebox'
import { messageOf } from '../../../shared/contract/errors.ts'
import { Type } from '../../../shared/contract/schema-builder.ts'
import { stringMap } from '../../../shared/contract/string-map.ts'
import { faultText } from '../../../shared/http/connection-fault.ts'
import { readBounded } from '../../../shared/streams/bounded-output.ts'
import { type AddressGuard, AddressRefused } from '../../outbound/address-guard.ts'
import { pinnedFetch } from '../../outbound/pinned-fetch.ts'
import { ExecutionError, type ExecutorContext, invalidInput } from '../executor.ts'
import { ToolParams } from '../params.ts'
import { asExecutionError } from './file.ts'
import type { FileRoot } from './file-root.ts'
import type { OsTool } from './os.ts'

/** Maximum bytes of a response body in the result. Source: spec, Limits A. */
export const MAX_BODY_BYTES = 1024 * 1024

/** Maximum bytes of a response body that `save_to` writes. */
export const MAX_SAVED_BYTES = 1024 * 1024 * 1024

export const MAX_REDIRECTS = 10

/** Bun silently turns any other method into GET. */
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const

const isHeaders = 'object of strings'

export const httpParams = new ToolParams(
  'http',
  Type.Object({
    url: Type.String({
      missing: 'url is required',
      expected: 'string',
      minLength: 1,
      description: 'http: or https: address.',
      examples: ['https://example.org/data.json'],
    }),
    method: Type.Optional(
      Type.String({
        expected: 'string',
        enum: METHODS, // documents the values; lower case is allowed, and others fail when the task runs
        default: 'GET',
        description: 'Default GET.',
      }),
    ),
    headers: Type.Optional(
      stringMap({
        expected: isHeaders,
        description: 'Request headers.',
        examples: [{ accept: 'application/json' }],
      }),
    ),
    body: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'Request body; not for GET and HEAD.',
        examples: ['{"name":"value"}'],
      }),
    ),
    save_to: Type.Optional(
      Type.String({
        expected: 'string',
        description: 'File that gets the response body; same paths as for file.',
        examples: ['downloads/data.json'],
      }),
    ),
  }),
)

export interface HttpResult {
  readonly status_code: number
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  /** Whether the body was cut off. */
  readonly truncated: boolean
  readonly saved_to?: string
  readonly bytes_written?: number
}

/** What a request needs of its attempt. */
type HttpContext = Pick<ExecutorContext, 'signal' | 'trace' | 'begin'>

export interface HttpTool extends OsTool {
  checkInput(input: unknown): void
  execute(input: unknown, context: HttpContext): Promise<HttpResult>
}

/** `root` is where `save_to` may write, `guard` decides which addresses may be connected to. */
export const http = (root: FileRoot, guard: AddressGuard): HttpTool => ({
  name: 'http',
  params: httpParams,
  checkInput(input) {
    const { method, url } = requestOf(httpParams.parse(input), root)
    try {
      guard.check(url)
    } catch (error) {
      throw asFailure(error, method, url)
    }
  },
  execute: async (input, context) => request(httpParams.parse(input), root, guard, context),
})

/** The initial request. Throws `invalid_input` or `denied`, also for a path that its answer cannot be saved to. */
function requestOf(params: Static<typeof httpParams.schema>, root: FileRoot): Request {
  const method = (params.method ?? 'GET').toUpperCase()
  if (!(METHODS as readonly string[]).includes(method)) {
    throw invalidInput(`unsupported method "${params.method}" (supported: ${METHODS.join(', ')})`)
  }
  const url = urlOf(params.url)
  if (params.body !== undefined && (method === 'GET' || method === 'HEAD')) {
    throw invalidInput(`a ${method} request cannot have a body (give another method)`)
  }
  if (params.save_to !== undefined) root.check(params.save_to)
  return { url, method, headers: headersOf(params.headers), body: params.body ?? null }
}

async function request(
  params: Static<typeof httpParams.schema>,
  root: FileRoot,
  guard: AddressGuard,
  context: HttpContext,
): Promise<HttpResult> {
  const first = requestOf(params, root)
  const { url, method, headers } = first
  const isTraced = ['traceparent', 'tracestate'].some((name) => headers.has(name))
  for (const [name, value] of Object.entries((!isTraced && context.trace) || {})) headers.set(name, value)
  await context.begin()
  try {
    const response = await follow(first, guard, context.signal)
    const head = { status_code: response.status, headers: Object.fromEntries(response.headers) }
    if (params.save_to !== undefined && response.status < 400) {
      const bytes_written = await save(response, root, params.save_to)
      return { ...head, body: '', truncated: false, saved_to: params.save_to, bytes_written }
    }
    const { text, truncated } =
      response.body === null
        ? { text: '', truncated: false }
        : await readBounded(response.body, MAX_BODY_BYTES, { stopAtLimit: true })
    const result: HttpResult = { ...head, body: text, truncated }
    if (response.status < 400) return result
    const details = { status_code: response.status }
    throw new ExecutionError('external_failure', `http status ${response.status}`, { result, details })
  } catch (error) {
    throw asFailure(error, method, url)
  }
}

function asFailure(error: unknown, method: string, url: URL): ExecutionError {
  if (error instanceof ExecutionError) return error
  const what = `${method} ${withoutCredentials(url)}`
  if (error instanceof AddressRefused) return denied(what, error)
  return new ExecutionError('external_failure', `${what}: ${faultText(error)}`, { cause: error })
}

function denied(what: string, refusal: AddressRefused): ExecutionError {
  const { message, host, addresses } = refusal
  return new ExecutionError('denied', `${what}: ${message}`, { cause: refusal, details: { host, addresses } })
}

type Request = {
  readonly url: URL
  readonly method: string
  readonly headers: Headers
  readonly body: string | null
}

/**
 * Sends the request and follows redirects like a browser: the method may change. Credentials and a `Host` header
 * stay with their origin.
 */
async function follow(first: Request, guard: AddressGuard, signal: AbortSignal): Promise<Response> {
  let { url, method, headers, body } = first
  for (let redirects = 0; ; redirects++) {
    const response = await pinnedFetch(guard, url, { method, headers, body, signal }).catch((error) => {
      if (redirects === 0 || !(error instanceof AddressRefused)) throw error
      throw denied(`${first.method} ${withoutCredentials(first.url)}: redirected to ${withoutCredentials(url)}`, error)
    })
    const location = response.headers.get('location')
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return response
    await response.body?.cancel()
    if (redirects === MAX_REDIRECTS) {
      throw new ExecutionError('external_failure', `too many redirects (more than ${MAX_REDIRECTS})`)
    }
    const next = httpUrl(location, url)
    if (next === undefined) {
      throw new ExecutionError('external_failure', `redirected to "${location}", which is no http: or https: address`)
    }
    if (next.origin !== url.origin) {
      headers = new Headers(headers)
      for (const own of ['authorization', 'cookie', 'proxy-authorization', 'host']) headers.delete(own)
    }
    const becomesGet = response.status === 303 ? method !== 'HEAD' : response.status < 303 && method === 'POST'
    if (becomesGet) {
      method = 'GET'
      body = null
      headers = new Headers(headers)
      headers.delete('content-type')
      headers.delete('content-length')
    }
    url = next
  }
}

function urlOf(text: string): URL {
  const url = httpUrl(text)
  if (url === undefined) throw invalidInput(`url must be an absolute http: or https: address, got "${text}"`)
  return url
}

function httpUrl(text: string, base?: URL): URL | undefined {
  const url = URL.parse(text, base?.href)
  return url !== null && (url.protocol === 'http:' || url.protocol === 'https:') ? url : undefined
}

function headersOf(given: Readonly<Record<string, string>> | undefined): Headers {
  try {
    return new Headers(given ?? {})
  } catch (error) {
    throw invalidInput(`parse http params: headers: ${messageOf(error)}`)
  }
}

async function save(response: Response, root: FileRoot, path: string): Promise<number> {
  try {
    const file = await root.open(path, constants.O_WRONLY | constants.O_CREAT)
    try {
      await file.truncate(0)
      return await copyBody(response, file, path)
    } catch (error) {
      await file.truncate(0) // keep no partial document
      throw error
    } finally {
      await file.close()
    }
  } catch (error) {
    throw asExecutionError(error, 'save', path)
  }
}

async function copyBody(response: Response, file: FileHandle, path: string): Promise<number> {
  let written = 0
  for await (const chunk of response.body ?? []) {
    written += chunk.byteLength
    if (written > MAX_SAVED_BYTES) {
      const message = `save ${path}: the body is larger than ${MAX_SAVED_BYTES} bytes`
      throw new ExecutionError('resource_limit_exceeded', message)
    }
    await file.writeFile(chunk)
  }
  return written
}

const withoutCredentials = (url: URL): string => {
  const shown = new URL(url)
  shown.username = ''
  shown.password = ''
  return shown.href
}

/**
 * Makes one HTTP request: `{status_code, body, headers, truncated}`. A status of 400 or more fails the task and keeps
 * the result. With `save_to` a body goes to a file instead: `{..., body: "", saved_to, bytes_written}`. Each URL, also that
 * of a redirect, passes the guard of addresses. Secrets in the request go to hosts of their rules only, and to none that a
 * redirect names.
 */
import { constants } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { Static } from '@sinclair/typebox'
import { messageOf } from '../../../shared/contract/errors.ts'
import { Type } from '../../../shared/contract/schema-builder.ts'
import { stringMap } from '../../../shared/contract/string-map.ts'
import { secretTargetOf } from '../../../shared/egress/secret-host.ts'
import type { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { faultText } from '../../../shared/http/connection-fault.ts'
import type { SecretNames } from '../../../shared/request/secrets.ts'
import { readBounded } from '../../../shared/streams/bounded-output.ts'
import { MASK } from '../../../shared/streams/masker.ts'
import { isObject } from '../../../shared/text/json.ts'
import { type AddressGuard, AddressRefused } from '../../outbound/address-guard.ts'
import { type CarriedSecrets, SecretRefused } from '../../outbound/carried-secrets.ts'
import { pinnedFetch } from '../../outbound/pinned-fetch.ts'
import { InputWithSecrets, type SecretPlace } from '../../rules/secret-places.ts'
import { ExecutionError, type ExecutorContext, invalidInput } from '../executor.ts'
import { ToolParams } from '../params.ts'
import { type SentSecrets, sendingSecrets } from '../sent-secrets.ts'
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
type HttpContext = Pick<ExecutorContext, 'signal' | 'tenant' | 'trace' | 'begin'>

export interface HttpTool extends OsTool {
  checkInput(input: unknown, secrets?: SecretNames, tenant?: string): void
  execute(input: unknown, context: HttpContext): Promise<HttpResult>
}

/**
 * `root` is where `save_to` may write, `guard` decides which addresses may be connected to. `directory` has the secrets that
 * requests may carry.
 */
export const http = (root: FileRoot, guard: AddressGuard, directory: SecretsDirectory): HttpTool => ({
  name: 'http',
  params: httpParams,
  checkInput(input, _, tenant) {
    const { method, url, shown } = requestOf(httpParams.parse(input), root)
    try {
      guard.for(tenant).check(url)
    } catch (error) {
      throw asFailure(error, method, shown)
    }
  },
  sendingOf: (input) => {
    const given = isObject(input) && typeof input.url === 'string' ? URL.parse(input.url) : null
    const target = given === null ? undefined : secretTargetOf(given)
    return { directory, asker: { type: 'http', to: target === undefined ? [] : [target] } }
  },
  execute: async (input, context) => {
    if (!(input instanceof InputWithSecrets)) return request(httpParams.parse(input), root, guard, context)
    const sent: SentSecrets = { directory, sender: 'http', isLine: ([field]) => field !== 'body', context }
    const send = (whole: unknown, secrets: CarriedSecrets) =>
      request(httpParams.parse(whole), root, guard, context, { secrets, places: input.places })
    return sendingSecrets(sent, input, send, true)
  },
})

/** The secrets of a request, and where they stand in it. */
interface Carried {
  readonly secrets: CarriedSecrets
  readonly places: readonly SecretPlace[]
}

/** The names of the headers with secrets. */
const secretHeaders = ({ places }: Carried): string[] =>
  places.flatMap(({ path: [field, name] }) => (field === 'headers' ? [String(name)] : []))

const secretAt = (carried: Carried | undefined, field: 'url' | 'body') =>
  carried?.places.find(({ path }) => path[0] === field)?.secret

/** The initial request. Throws `invalid_input` or `denied`, also for a path that its answer cannot be saved to. */
function requestOf(params: Static<typeof httpParams.schema>, root: FileRoot, shownUrl?: string): Request {
  const method = (params.method ?? 'GET').toUpperCase()
  if (!(METHODS as readonly string[]).includes(method)) {
    throw invalidInput(`unsupported method "${params.method}" (supported: ${METHODS.join(', ')})`)
  }
  const url = urlOf(params.url, shownUrl)
  if (params.body !== undefined && (method === 'GET' || method === 'HEAD')) {
    throw invalidInput(`a ${method} request cannot have a body (give another method)`)
  }
  if (params.save_to !== undefined) root.check(params.save_to)
  const shown = shownUrl ?? withoutCredentials(url)
  return { url, shown, method, headers: headersOf(params.headers), body: params.body ?? null }
}

async function request(
  params: Static<typeof httpParams.schema>,
  root: FileRoot,
  guard: AddressGuard,
  context: HttpContext,
  carried?: Carried,
): Promise<HttpResult> {
  const first = requestOf(params, root, shownUrl(carried))
  const { shown, method, headers } = first
  const isTraced = ['traceparent', 'tracestate'].some((name) => headers.has(name))
  for (const [name, value] of Object.entries((!isTraced && context.trace) || {})) headers.set(name, value)
  await context.begin()
  try {
    const response = await follow(first, guard.for(context.tenant), context.signal, carried)
    const head = { status_code: response.status, headers: shownHeaders(response.headers, carried) }
    const answer = carried && response.body ? carried.secrets.maskedStream(response.body) : response.body
    if (params.save_to !== undefined && response.status < 400) {
      const bytes_written = await save(answer, root, params.save_to)
      return { ...head, body: '', truncated: false, saved_to: params.save_to, bytes_written }
    }
    const { text, truncated } =
      answer === null
        ? { text: '', truncated: false }
        : await readBounded(answer, MAX_BODY_BYTES, { stopAtLimit: true })
    const result: HttpResult = { ...head, body: text, truncated }
    if (response.status < 400) return result
    const details = { status_code: response.status }
    throw new ExecutionError('external_failure', `http status ${response.status}`, { result, details })
  } catch (error) {
    throw asFailure(error, method, shown)
  }
}

/** `https://example.org/hooks/***` for a URL with a secret; undefined for any other. */
function shownUrl(carried: Carried | undefined): string | undefined {
  const secret = secretAt(carried, 'url')
  return secret && `${secret.prefix}${MASK}${secret.suffix}`
}

const shownHeaders = (headers: Headers, carried: Carried | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...headers].map(([name, value]) => [name, carried === undefined ? value : carried.secrets.maskedText(value)]),
  )

function asFailure(error: unknown, method: string, shown: string): ExecutionError | SecretRefused {
  if (error instanceof ExecutionError || error instanceof SecretRefused) return error
  const what = `${method} ${shown}`
  if (error instanceof AddressRefused) return denied(what, error)
  return new ExecutionError('external_failure', `${what}: ${faultText(error)}`, { cause: error })
}

function denied(what: string, refusal: AddressRefused): ExecutionError {
  const { message, host, addresses } = refusal
  return new ExecutionError('denied', `${what}: ${message}`, { cause: refusal, details: { host, addresses } })
}

type Request = {
  readonly url: URL
  /** The URL for people. */
  readonly shown: string
  readonly method: string
  readonly headers: Headers
  readonly body: string | null
}

/**
 * Sends the request and follows redirects like a browser: the method may change. Credentials and a `Host` header
 * stay with their origin, and so does what carries a secret.
 */
async function follow(
  first: Request,
  guard: AddressGuard,
  signal: AbortSignal,
  carried: Carried | undefined,
): Promise<Response> {
  let { url, method, headers, body } = first
  let secrets = carried?.secrets
  for (let redirects = 0; ; redirects++) {
    const response = await pinnedFetch(guard, url, { method, headers, body, signal, secrets }).catch((error) => {
      if (redirects === 0 || !(error instanceof AddressRefused)) throw error
      throw denied(`${first.method} ${first.shown}: redirected to ${withoutCredentials(url)}`, error)
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
    const isOther = next.origin !== url.origin
    if (isOther) {
      headers = new Headers(headers)
      for (const own of ['authorization', 'cookie', 'proxy-authorization', 'host']) headers.delete(own)
      for (const own of carried ? secretHeaders(carried) : []) headers.delete(own)
    }
    const becomesGet = response.status === 303 ? method !== 'HEAD' : response.status < 303 && method === 'POST'
    if (becomesGet) {
      method = 'GET'
      body = null
      headers = new Headers(headers)
      headers.delete('content-type')
      headers.delete('content-length')
    }
    if (isOther && carried !== undefined) {
      const isCarried = (body !== null && secretAt(carried, 'body') !== undefined) || carried.secrets.isIn(next.href)
      if (isCarried) throw new SecretRefused(`redirected to ${next.origin}, where a secret of the request may not go`)
      secrets = undefined
    }
    url = next
  }
}

function urlOf(text: string, shown = text): URL {
  const url = httpUrl(text)
  if (url === undefined) throw invalidInput(`url must be an absolute http: or https: address, got "${shown}"`)
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

type Body = ReadableStream<Uint8Array> | null

async function save(body: Body, root: FileRoot, path: string): Promise<number> {
  try {
    const file = await root.open(path, constants.O_WRONLY | constants.O_CREAT)
    try {
      await file.truncate(0)
      return await copyBody(body, file, path)
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

async function copyBody(body: Body, file: FileHandle, path: string): Promise<number> {
  let written = 0
  for await (const chunk of body ?? []) {
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

/**
 * The secrets that one request carries: where they may go, and masks for what comes back.
 *
 * The values are read when the request is made. Nothing else keeps them: an attempt, a try or a call has an object of this
 * class, which goes with it.
 */
import { type SecretTarget, secretTargetOf } from '../../shared/egress/secret-host.ts'
import { ofTokenTenant, type SecretAsker } from '../../shared/files/secret-rules.ts'
import { MAX_TASK_SECRETS_BYTES, secretText } from '../../shared/files/secret-values.ts'
import { SecretFault, type SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import { isYieldDue, runSync, type Steps } from '../../shared/process/steps.ts'
import type { SecretText } from '../../shared/request/secret-text.ts'
import { MASK, Masker, MaskTexts } from '../../shared/streams/masker.ts'
import { isObject, type JsonObject } from '../../shared/text/json.ts'
import { MaskForms } from '../../shared/text/mask-forms.ts'

/** What sends secrets. */
export type SecretSender = 'http' | 'mcp' | 'callback'

/** The request would carry a secret to where it may not go. */
export class SecretRefused extends Error {
  override name = 'SecretRefused'
}

/** Bytes that are masked at once; some milliseconds. */
const BYTES_PER_STEP = 256 * 1024

/** Characters of the shortest path of a secret address that is masked by itself. Shorter ones stand in any text. */
const MIN_PLACE_CHARACTERS = 8

/** What a header and a URL can hold of a value: a line break would begin another header. */
const ONE_LINE = /^[\x20-\x7e\x80-\xff]*$/

export class CarriedSecrets {
  readonly #directory: SecretsDirectory
  readonly #asker: SecretAsker
  readonly #values = new Map<string, string>()
  /** Of all values, and of those that are masked in what comes back. */
  readonly #forms = { all: new MaskForms(), shown: new MaskForms() }
  #texts: MaskTexts | undefined
  #bytes = 0

  /** `tenant` is that of the token, if it has one. */
  constructor(directory: SecretsDirectory, type: SecretSender, tenant: string | undefined) {
    this.#directory = directory
    this.#asker = { type, ...ofTokenTenant(tenant), to: [] }
  }

  /** Who asks for the values, before it is known where they go. */
  get asker(): SecretAsker {
    return this.#asker
  }

  /** The text, with the value that the secret has now. `isLine`: for a header or a URL. Throws `SecretFault`. */
  textOf({ name, prefix, suffix, isMasked }: SecretText, isLine: boolean): string {
    const value = this.#read(name)
    for (const text of [value, ...placeIn(value)]) {
      const bytes = Buffer.from(text)
      const fault = this.#forms.all.add(bytes) ?? (isMasked ? this.#forms.shown.add(bytes) : undefined)
      if (fault !== undefined) throw new SecretFault(`the secret ${name} ${fault}`)
    }
    if (isLine && !ONE_LINE.test(value))
      throw new SecretFault(`the secret ${name} has a line break or a character that no header and no URL can hold`)
    this.#texts = undefined
    return prefix + value + suffix
  }

  #read(name: string): string {
    const known = this.#values.get(name)
    if (known !== undefined) return known
    const bytes = this.#directory.read(name, this.#asker)
    this.#bytes += bytes.length
    if (this.#bytes > MAX_TASK_SECRETS_BYTES)
      throw new SecretFault(`the secrets of a request have at most ${MAX_TASK_SECRETS_BYTES} bytes together`)
    const value = secretText(name, bytes)
    this.#values.set(name, value)
    return value
  }

  /** Throws `SecretRefused` unless each secret may be sent to one of `targets`, which are the same place. */
  checkTargets(targets: readonly SecretTarget[]): void {
    for (const name of this.#values.keys()) {
      const denied =
        targets.length === 0
          ? `the secret ${name} has no host to go to`
          : this.#directory.whyDenied(name, { ...this.#asker, to: targets })
      if (denied !== undefined) throw new SecretRefused(denied)
    }
  }

  /**
   * Throws `SecretRefused` unless each secret may be sent to the host of `url`. A server with several names would hand a request
   * on to another one by its `Host`, so no other name may stand there.
   */
  check(url: URL, headers: Headers): void {
    if (this.#values.size === 0) return
    const target = secretTargetOf(url)
    this.checkTargets(target === undefined ? [] : [target])
    const host = headers.get('host')
    if (host !== null && host.toLowerCase() !== url.host)
      throw new SecretRefused('a request with secrets has no Host header but that of its URL (leave it out)')
  }

  /** The same for requests that carry the same. */
  get digest(): string {
    const forms = new Bun.CryptoHasher('sha256')
    for (const [name, value] of this.#values) forms.update(JSON.stringify([name, value]))
    return forms.digest('hex')
  }

  /** Whether a value is in `text`, in any form that is recognized. */
  isIn(text: string): boolean {
    const bytes = Buffer.from(text)
    return this.#forms.all.all.some((form) => bytes.includes(form))
  }

  /** `body` with masked values. */
  maskedStream(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const masker = new Masker(this.#maskTexts)
    return body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => pass(masker.push(chunk), controller),
        flush: (controller) => pass(masker.end(), controller),
      }),
    )
  }

  /** A copy of `value`, as JSON has it, with masked values: in texts, names and numbers. */
  *masked(value: unknown): Steps<unknown> {
    if (this.#forms.shown.all.length === 0) return value
    return yield* maskedIn(value, this.#maskTexts, { steps: 0 })
  }

  maskedText(text: string): string {
    return runSync(maskedText(text, this.#maskTexts))
  }

  get #maskTexts(): MaskTexts {
    this.#texts ??= new MaskTexts(this.#forms.shown.all)
    return this.#texts
  }
}

/** What a server sees of a secret address: that is how it answers it. */
function placeIn(value: string): string[] {
  const { pathname = '', search = '' } = URL.parse(value) ?? {}
  return pathname.length + search.length < MIN_PLACE_CHARACTERS ? [] : [pathname + search]
}

function pass(bytes: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void {
  if (bytes.length > 0) controller.enqueue(bytes)
}

function* maskedIn(value: unknown, texts: MaskTexts, count: { steps: number }): Steps<unknown> {
  if (isYieldDue(count.steps++)) yield
  if (typeof value === 'string') return yield* maskedText(value, texts)
  if (typeof value === 'number') return (yield* maskedText(String(value), texts)).includes(MASK) ? MASK : value
  if (Array.isArray(value)) {
    const members: unknown[] = []
    for (const member of value) members.push(yield* maskedIn(member, texts, count))
    return members
  }
  if (!isObject(value)) return value
  const members: [string, unknown][] = []
  for (const [name, member] of Object.entries(value as JsonObject))
    members.push([yield* maskedText(name, texts), yield* maskedIn(member, texts, count)])
  return Object.fromEntries(members)
}

function* maskedText(text: string, texts: MaskTexts): Steps<string> {
  const bytes = Buffer.from(text)
  const masker = new Masker(texts)
  const parts: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += BYTES_PER_STEP) {
    if (at > 0) yield
    parts.push(masker.push(bytes.subarray(at, at + BYTES_PER_STEP)))
  }
  parts.push(masker.end())
  const masked = Buffer.concat(parts)
  return masked.equals(bytes) ? text : masked.toString() // a text with a lone surrogate stays what it is
}

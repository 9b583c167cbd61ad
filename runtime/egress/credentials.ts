/**
 * What rules about single requests do: they let some requests pass, and have the proxy add secrets to them, which the task
 * never sees. What is added is masked in the answer.
 *
 * A host that such a rule covers is reached by such rules only, whatever other rules cover it. Values are read anew for each
 * request, and so is the rule of the operator about where they may go.
 */
import { coversAddress, coversName, coversPort } from '../../shared/egress/rule.ts'
import type { SecretTarget } from '../../shared/egress/secret-host.ts'
import { secretText } from '../../shared/files/secret-values.ts'
import { SecretFault } from '../../shared/files/secrets-directory.ts'
import type { OpenedRule } from '../../shared/request/network-rules.ts'
import { coversRequest } from '../../shared/request/request-rule.ts'
import { MaskTexts } from '../../shared/streams/masker.ts'
import { MAX_MASKED_BYTES, MaskForms, MIN_MASKED_CHARACTERS } from '../../shared/text/mask-forms.ts'
import type { Authority } from '../plan/authority.ts'
import type { Refusal } from './verdict.ts'
import { type Header, type PlainTarget, type RequestHead, websocketKey } from './wire/http-request.ts'

/** Reads a secret that may go to `to`. Throws `SecretFault`. */
export type ReadSecret = (name: string, to: SecretTarget) => Promise<Buffer> | Buffer

/** A request as the server gets it. */
export interface CarriedRequest {
  readonly head: RequestHead
  readonly target: PlainTarget
  /** Headers in place of those of the same names. */
  readonly added: readonly Header[]
  /** What is masked in the answer. Undefined: nothing, as nothing secret was added. */
  readonly masks: MaskTexts | undefined
}

/** A line break in a header would begin another one, and what is not ASCII has several forms in an answer. */
const ONE_LINE = /^[\x20-\x7e]*$/

/** With these, a server takes a request for one with another method. */
const METHOD_OVERRIDES: ReadonlySet<string> = new Set(['x-http-method', 'x-http-method-override', 'x-method-override'])

export class Credentials {
  readonly #rules: readonly OpenedRule[]
  readonly #read: ReadSecret
  /** Names of secrets, by the texts that the task has in their place. */
  readonly #placeholders: ReadonlyMap<string, string>
  /** What was masked last. Most requests of a task carry the same values, and to make it takes longer than all else. */
  #last: { readonly values: string; readonly masks: MaskTexts } | undefined

  constructor(rules: readonly OpenedRule[], read: ReadSecret, placeholders: ReadonlyMap<string, string> = new Map()) {
    this.#rules = rules
    this.#read = read
    this.#placeholders = placeholders
  }

  /** Whether each request to `target` is looked at. */
  opens(target: Authority): boolean {
    return this.#rulesFor(target).length > 0
  }

  /** A request as the server gets it, or why it gets none. Undefined where no rule is about single requests. */
  async carry(
    head: RequestHead,
    target: PlainTarget,
    isTls: boolean,
  ): Promise<CarriedRequest | { readonly refusal: Refusal } | undefined> {
    const rules = this.#rulesFor(target)
    if (rules.length === 0) return undefined
    const [path] = target.path.split('?', 1) as [string]
    const rule = rules.find(({ requests }) => coversRequest(requests, head.method, path))
    if (rule === undefined)
      return { refusal: { kind: 'request', rule: rules[0]!.hosts.text, what: `${head.method} ${path}` } }
    const { headers = {}, basic, query = {}, methods } = rule.requests
    const values = new Values(this.#read, { host: target.host, port: target.port, isTls })
    try {
      const added: Header[] = []
      for (const [name, { secret, prefix }] of Object.entries(headers))
        added.push(headerOf(name, (prefix ?? '') + (await values.of(secret))))
      if (basic !== undefined) added.push(headerOf('Authorization', `Basic ${await values.basic(basic)}`))
      let { path } = target
      for (const [name, { secret, prefix }] of Object.entries(query))
        path = withParameter(path, name, (prefix ?? '') + (await values.of(secret)))
      const replaced: Header[] = []
      for (const header of head.headers) replaced.push(await this.#replaced(header, values))
      const masks = this.#masksOf(values)
      if (masks !== undefined && websocketKey(head) !== undefined)
        return { refusal: { kind: 'websocket', rule: rule.hosts.text } }
      if (masks !== undefined) added.push(headerOf('Accept-Encoding', 'identity'))
      return {
        head: { ...head, headers: methods === undefined ? replaced : replaced.filter(isNoOverride) },
        ...{ target: { ...target, path }, added, masks },
      }
    } catch (error) {
      if (!(error instanceof SecretFault)) throw error
      return { refusal: { kind: 'secret', why: error.message } }
    }
  }

  /** What is masked in the answer. Undefined: nothing. Throws `SecretFault`. */
  #masksOf(values: Values): MaskTexts | undefined {
    const { shown } = values
    if (shown.size === 0) return undefined
    const key = [...shown.keys()].join('\n')
    if (this.#last?.values !== key) this.#last = { values: key, masks: masksOf(shown) }
    return this.#last.masks
  }

  /** A header of the task with secrets in place of the placeholders in it, also within credentials of HTTP Basic. */
  async #replaced(header: Header, values: Values): Promise<Header> {
    const [, basic] = /^basic +([A-Za-z0-9+/]+=*)$/i.exec(header.value) ?? []
    const given = basic === undefined ? header.value : Buffer.from(basic, 'base64').toString('latin1')
    let value = given
    for (const [text, name] of this.#placeholders) {
      if (!value.includes(text)) continue
      const found = await values.of(name)
      value = value.replaceAll(text, () => found)
    }
    if (value === given) return header
    return { ...header, value: basic === undefined ? value : `Basic ${values.encoded(value)}` }
  }

  #rulesFor({ host, port }: Authority): readonly OpenedRule[] {
    return this.#rules.filter(
      ({ hosts }) =>
        coversPort(hosts, port) && ('name' in host ? coversName(hosts, host.name) : coversAddress(hosts, host.address)),
    )
  }
}

/** The values that one request carries. */
class Values {
  readonly #read: ReadSecret
  readonly #to: SecretTarget
  /** Names of what the request carries, by the texts, which are single lines. */
  readonly shown = new Map<string, string>()

  constructor(read: ReadSecret, to: SecretTarget) {
    this.#read = read
    this.#to = to
  }

  /** Throws `SecretFault`. */
  async of(name: string): Promise<string> {
    const value = secretText(name, await this.#read(name, this.#to))
    const bytes = Buffer.from(value)
    if (!ONE_LINE.test(value))
      throw new SecretFault(
        `the secret ${name} has a line break, or a character beyond ASCII, which no header can hold`,
      )
    if ([...value].length < MIN_MASKED_CHARACTERS || bytes.length > MAX_MASKED_BYTES)
      throw new SecretFault(
        `the secret ${name} cannot be masked in answers: it has not ${MIN_MASKED_CHARACTERS} characters to ${MAX_MASKED_BYTES} bytes`,
      )
    this.shown.set(value, name)
    return value
  }

  /** The credentials of HTTP Basic. Throws `SecretFault`. */
  async basic({ user, secret }: { readonly user: string; readonly secret: string }): Promise<string> {
    return this.encoded(`${user}:${await this.of(secret)}`)
  }

  /** Credentials with a value in base64. */
  encoded(credentials: string): string {
    const text = Buffer.from(credentials, 'latin1').toString('base64')
    this.shown.set(text, 'of HTTP Basic')
    return text
  }
}

/** Throws `SecretFault`. */
function masksOf(shown: ReadonlyMap<string, string>): MaskTexts {
  const forms = new MaskForms()
  for (const [text, name] of shown) {
    const fault = forms.add(Buffer.from(text))
    if (fault !== undefined) throw new SecretFault(`the secret ${name} ${fault}`)
  }
  return new MaskTexts(forms.all)
}

const headerOf = (name: string, value: string): Header => ({ name, key: name.toLowerCase(), value })

/** `path` with a parameter in its query in place of those of this name, however they are spelled. */
function withParameter(path: string, name: string, value: string): string {
  const [before, ...after] = path.split('?') as [string, ...string[]]
  const kept = after
    .join('?')
    .split('&')
    .filter((part) => part !== '' && !new URLSearchParams(part).has(name))
  return `${before}?${[...kept, `${encodeURIComponent(name)}=${encodeURIComponent(value)}`].join('&')}`
}

const isNoOverride = ({ key }: Header): boolean => !METHOD_OVERRIDES.has(key)

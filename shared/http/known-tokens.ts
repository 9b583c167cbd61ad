/**
 * The tokens of a tokens file, read again when it changes.
 *
 * A file that cannot be used leaves the earlier tokens in force, and `fault` says why. A token that was revoked, changed or has
 * expired is refused at once, and fires the signal of its caller.
 */
import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs'
import { messageOf, systemCodeOf, UsageError } from '../contract/errors.ts'
import { parseReach, type Rule } from '../egress/rule.ts'
import type { Log } from '../logs/log.ts'
import type { Caller } from './callers.ts'
import {
  MAX_TOKENS_FILE_BYTES,
  type TokenEntry,
  type TokenOptions,
  TokensFault,
  type TokensFile,
  tokensFileIn,
  tokensFormOf,
} from './token-entries.ts'

/** Milliseconds between two looks at the file. */
export const TOKENS_LOOK_MS = 1_000

/** Mode bits with which others could give themselves rights. */
const WRITTEN_BY_OTHERS = 0o022

interface Known {
  readonly digest: Buffer
  /** Of the entry, as JSON: another one is another token. */
  readonly text: string
  readonly expiresAt: number
  readonly caller: Caller
  end(): void
}

export class KnownTokens {
  readonly #path: string
  readonly #log: Log
  readonly #options: TokenOptions
  /** Keeps the time of a look-up from telling anything about a hash. */
  readonly #salt = randomBytes()
  #known = new Map<string, Known>()
  /** By the name of the tenant. */
  #reach = new Map<string, readonly Rule[]>()
  /** Tells versions of the file apart. */
  #version = ''
  #timer: Timer | undefined
  #fault: string | undefined

  /** Reads the file. Throws `UsageError`. */
  constructor(path: string, log: Log, options: TokenOptions = {}) {
    this.#path = path
    this.#log = log
    this.#options = options
    try {
      this.#version = versionOf(path)
      this.#use(this.#file())
    } catch (error) {
      throw new UsageError(`cannot use the tokens file ${path}: ${faultText(error)} (--tokens-file)`)
    }
  }

  /** Why the file of now is not in force; undefined if it is. */
  get fault(): string | undefined {
    return this.#fault
  }

  /** Whose token it is; undefined for an unknown or expired one. */
  callerWith(token: string): Caller | undefined {
    const digest = digestOf(token)
    const known = this.#known.get(this.#keyOf(digest))
    if (known === undefined || !crypto.timingSafeEqual(known.digest, digest) || known.expiresAt <= Date.now())
      return undefined
    return known.caller
  }

  /** Whose name it is; undefined for an unknown one, and for one whose token has expired. */
  callerNamed(name: string): Caller | undefined {
    for (const { caller, expiresAt } of this.#known.values())
      if (caller.grant.name === name) return expiresAt <= Date.now() ? undefined : caller
    return undefined
  }

  /** Where requests of a tenant may go to, beside public addresses. */
  reachOf(tenant: string): readonly Rule[] {
    return this.#reach.get(tenant) ?? []
  }

  /** Looks at the file from time to time, until `stop`. */
  watch(): void {
    this.#timer ??= setInterval(() => this.look(), TOKENS_LOOK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Reads the file if it has changed, and ends what expired tokens read. */
  look(): void {
    for (const known of this.#known.values()) if (known.expiresAt <= Date.now()) known.end()
    try {
      const version = versionOf(this.#path)
      if (version === this.#version) return
      const file = this.#file()
      this.#use(file)
      this.#version = version
      this.#fault = undefined
      this.#log.info('tokens file read', { tokens: file.tokens.length })
    } catch (error) {
      const fault = faultText(error)
      if (fault === this.#fault) return
      this.#fault = fault
      this.#version = '' // the earlier file may come back
      this.#log.error('tokens file cannot be used: the earlier tokens stay in force', { error: fault })
    }
  }

  #file(): TokensFile {
    return tokensFileIn(textOf(this.#path), tokensFormOf(this.#path), this.#options)
  }

  #use({ tokens: entries, tenants }: TokensFile): void {
    this.#reach = new Map(tenants.map(({ name, reach }) => [name, reach.map(parseReach)]))
    const before = this.#known
    this.#known = new Map(
      entries.map((entry) => {
        const digest = Buffer.from(entry.hash.slice('sha256:'.length), 'hex')
        const key = this.#keyOf(digest)
        const text = JSON.stringify(entry)
        const same = before.get(key)
        return [key, same?.text === text ? same : newKnown(entry, digest, text)]
      }),
    )
    for (const [key, known] of before) if (this.#known.get(key) !== known) known.end()
  }

  #keyOf(digest: Buffer): string {
    return new Bun.CryptoHasher('sha256', this.#salt).update(digest).digest('base64')
  }
}

function newKnown(entry: TokenEntry, digest: Buffer, text: string): Known {
  const { hash: _, expires, ...grant } = entry
  const ending = new AbortController()
  const expiresAt = expires === undefined ? Number.POSITIVE_INFINITY : Date.parse(expires)
  const caller = { grant, signal: ending.signal, expiresAt }
  return { digest, text, expiresAt, caller, end: () => ending.abort() }
}

const TOKEN_BYTES = 32

const randomBytes = (): Uint8Array => crypto.getRandomValues(new Uint8Array(TOKEN_BYTES))

const digestOf = (text: string): Buffer => new Bun.CryptoHasher('sha256').update(text).digest()

/** A token that nobody can guess. Its beginning lets scanners for secrets find it. */
export const newToken = (): string => `tmk_${randomBytes().toBase64({ alphabet: 'base64url', omitPadding: true })}`

/** The hash of a token, as an entry has it. */
export const tokenHash = (token: string): string => `sha256:${digestOf(token).toString('hex')}`

function versionOf(path: string): string {
  const { ino, dev, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true })
  return [dev, ino, size, mtimeNs, ctimeNs].join(' ')
}

/** Throws `TokensFault`, and errors of the system. */
function textOf(path: string): string {
  const fd = openSync(path, 'r')
  try {
    const { mode, size } = fstatSync(fd)
    if ((mode & WRITTEN_BY_OTHERS) !== 0) throw new TokensFault('other users can write it (chmod 600 it)')
    if (size > MAX_TOKENS_FILE_BYTES) throw new TokensFault(`it has ${size} bytes (at most ${MAX_TOKENS_FILE_BYTES})`)
    const bytes = Buffer.alloc(MAX_TOKENS_FILE_BYTES + 1)
    let length = 0
    for (;;) {
      const count = readSync(fd, bytes, length, bytes.length - length, length)
      length += count
      if (count === 0 || length === bytes.length) break
    }
    if (length > MAX_TOKENS_FILE_BYTES) throw new TokensFault(`it has more than ${MAX_TOKENS_FILE_BYTES} bytes`)
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, length))
  } finally {
    closeSync(fd)
  }
}

const faultText = (error: unknown): string =>
  error instanceof TokensFault ? error.message : (systemCodeOf(error) ?? messageOf(error))

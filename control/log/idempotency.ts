/**
 * Idempotency keys: a repeated request with the same `Idempotency-Key` gets the answer of the first one.
 *
 * A key belongs to its route and to the bytes of its body. A repeated request waits while the first one is in progress.
 * A refusal frees the key. The journal has key and graph in one frame, so a retry after a crash gets its answer, not a
 * 409. Packs have the keys among the notes.
 */
import { badRequest, ServiceError } from '../../shared/contract/errors.ts'
import { runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { KeptKey, SentKey } from '../rules/kept-key.ts'

export type { KeptKey, SentKey }

export const KEY_LIFETIME_MS = 24 * 3_600_000

/** Maximum number of keys. The oldest are dropped first. */
export const MAX_KEYS = 100_000

/** Maximum characters of all answers together. The oldest are dropped first. */
const MAX_ANSWER_CHARACTERS = 64 * 1024 * 1024

const MAX_KEY_CHARACTERS = 255

export class IdempotencyKeys {
  /** Keys of requests in progress. */
  readonly #asked = new Map<string, { readonly hash: string; readonly answer: Promise<string> }>()
  readonly #kept: Map<string, KeptKey>
  #characters = 0

  /** Forgets and adds keys in `kept`, oldest first. */
  constructor(kept = new Map<string, KeptKey>(), now = Date.now()) {
    this.#kept = kept
    for (const { answer } of kept.values()) this.#characters += answer.length
    this.#forgetOldest(now, 0)
  }

  /**
   * Returns the answer of `make`, or the earlier answer to the same request. `make` receives the key and stores it with
   * the graph; undefined if the request has no key. Throws 400 if the key is too long, 422 if it was sent with another
   * body.
   */
  once(
    { scope, key, body }: { scope: string; key: string | null; body: Uint8Array },
    make: (sent: SentKey | undefined) => Promise<string>,
    now = Date.now(),
  ): Promise<string> {
    return key === null || key === '' ? make(undefined) : this.#onceFor({ scope, key, body }, make, now)
  }

  async #onceFor(
    { scope, key, body }: { scope: string; key: string; body: Uint8Array },
    make: (sent: SentKey) => Promise<string>,
    now: number,
  ): Promise<string> {
    if (key.length > MAX_KEY_CHARACTERS) {
      throw badRequest(`Idempotency-Key must have at most ${MAX_KEY_CHARACTERS} characters`)
    }
    const sent: SentKey = { scope, key, hash: await runCooperatively(hashOf(body)) }
    this.#forgetOldest(now, 1)
    const name = nameOf(sent)
    const known = this.#asked.get(name) ?? this.#kept.get(name)
    if (known !== undefined) {
      if (known.hash !== sent.hash) throw new ServiceError(422, 'idempotency key reused with a different body')
      return known.answer
    }
    const answer = make(sent)
    this.#asked.set(name, { hash: sent.hash, answer })
    try {
      const text = await answer
      this.keep({ ...sent, answer: text, at: now })
      return text
    } finally {
      this.#asked.delete(name)
    }
  }

  /** Called in the turn in which the key is on disk, too: a pack that is written from then on must have it. */
  keep(key: KeptKey): void {
    const name = nameOf(key)
    this.#drop(name)
    this.#kept.set(name, key)
    this.#characters += key.answer.length
  }

  /** Drops expired keys, then the oldest ones until `room` more fit. */
  #forgetOldest(now: number, room: number): void {
    for (const [name, { at }] of this.#kept) {
      const isTooMany = this.#kept.size > MAX_KEYS - room || this.#characters > MAX_ANSWER_CHARACTERS
      if (at + KEY_LIFETIME_MS > now && !isTooMany) return
      this.#drop(name)
    }
  }

  #drop(name: string): void {
    this.#characters -= this.#kept.get(name)?.answer.length ?? 0
    this.#kept.delete(name)
  }
}

/** Bytes hashed in one step, which takes about 1 ms. */
const HASH_STEP_BYTES = 1024 * 1024

/** Takes one step for a body of a usual size: of two requests with one key the first that came is the first. */
function* hashOf(body: Uint8Array): Steps<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for (let at = 0; at < body.length; at += HASH_STEP_BYTES) {
    if (at > 0) yield
    hasher.update(body.subarray(at, at + HASH_STEP_BYTES))
  }
  return hasher.digest('hex')
}

export const nameOf = ({ scope, key }: SentKey): string => `${scope} ${key}`

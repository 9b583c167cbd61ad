/**
 * What a task has used of its network, in a file: after a crash the next service goes on from there.
 *
 * The file has the counts, and in places of their own the first of the connections that are open. A write is small, lies
 * within a page and is never synced: it outlives the service, and a task does not outlive its machine. Bytes are written
 * once in a turn of the event loop; all else at once.
 */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import type { OpenConnection } from './report.ts'

/** Maximum open connections that are kept. Further ones are only counted. */
export const MAX_KEPT_CONNECTIONS = 64

const PLACE_BYTES = 1024
const MAX_BYTES = PLACE_BYTES * (1 + MAX_KEPT_CONNECTIONS)

/** The first number of a file: how the rest is to be read. */
const FORMAT = 1

export interface UseCounts {
  /** The number of connections that have ended. */
  readonly allowed: number
  readonly refused: number
  /** Connections that are open. */
  readonly open: number
  /** Bytes of all connections. */
  readonly sent: number
  readonly received: number
}

export interface FoundUse {
  readonly counts: UseCounts
  readonly connections: readonly OpenConnection[]
}

export class KeptUse {
  readonly #onFault: (error: unknown) => void
  readonly #places: boolean[] = []
  #fd: number | undefined
  #counts: UseCounts = { allowed: 0, refused: 0, open: 0, sent: 0, received: 0 }
  #isDue = false
  /** What an earlier service has kept. */
  readonly found: FoundUse | undefined

  /** `onFault` is called once, and then nothing is kept any more. Throws if there can be no file. */
  constructor(path: string, onFault: (error: unknown) => void) {
    this.#onFault = onFault
    this.#fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
    const bytes = Buffer.alloc(MAX_BYTES)
    const length = readSync(this.#fd, bytes, 0, MAX_BYTES, 0)
    this.found = foundIn(bytes.subarray(0, length))
    for (let place = 0; length > PLACE_BYTES * (place + 1); place++) this.#write(textOf(''), place)
  }

  /** Keeps bytes, at the end of this turn. */
  soon(counts: UseCounts): void {
    this.#counts = counts
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      if (this.#isDue) this.now(this.#counts)
    })
  }

  now({ allowed, refused, open, sent, received }: UseCounts): void {
    this.#isDue = false
    this.#write(new Uint8Array(Float64Array.of(FORMAT, allowed, refused, open, sent, received).buffer))
  }

  /** Keeps an open connection. Returns its place; undefined if there is none. */
  add(connection: OpenConnection): number | undefined {
    const text = textOf(JSON.stringify(connection))
    const free = this.#places.indexOf(false)
    const place = free < 0 ? this.#places.length : free
    if (place >= MAX_KEPT_CONNECTIONS || text.length > PLACE_BYTES) return undefined
    this.#places[place] = true
    this.#write(text, place)
    return place
  }

  remove(place: number): void {
    this.#places[place] = false
    this.#write(textOf(''), place)
  }

  close(): void {
    if (this.#isDue) this.now(this.#counts)
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #write(bytes: Uint8Array, place = -1): void {
    if (this.#fd === undefined) return
    try {
      writeSync(this.#fd, bytes, 0, bytes.length, PLACE_BYTES * (place + 1))
    } catch (error) {
      closeSync(this.#fd)
      this.#fd = undefined
      this.#onFault(error)
    }
  }
}

/** As it is in a place: the spaces take the place of a longer text. */
const textOf = (json: string): Uint8Array => Buffer.from(json.padEnd(PLACE_BYTES))

/** Undefined if the file is new, or of another form. */
function foundIn(bytes: Buffer): FoundUse | undefined {
  const numbers = Array.from({ length: 6 }, (_, i) => (bytes.length < 48 ? Number.NaN : bytes.readDoubleLE(8 * i)))
  const [format, allowed, refused, open, sent, received] = numbers as [number, number, number, number, number, number]
  if (format !== FORMAT || !numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) return undefined
  const connections: OpenConnection[] = []
  for (let at = PLACE_BYTES; at < bytes.length; at += PLACE_BYTES) {
    const value = jsonOrUndefined(bytes.toString('utf8', at, at + PLACE_BYTES).replaceAll('\0', ''))
    if (isObject(value)) connections.push(value as unknown as OpenConnection)
  }
  return { counts: { allowed, refused, open, sent, received }, connections }
}

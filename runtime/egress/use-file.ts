/**
 * The file of what a task has used of its network: after a crash the next service goes on from there.
 *
 * The file has the counts, and in rows of their own the first of the connections that are open. A write is small, lies
 * within a page and is never synced: it outlives the service, and a task does not outlive its machine. Bytes are written
 * once in a turn of the event loop; all else at once.
 */
import { closeSync, constants, openSync, readSync, writeSync } from 'node:fs'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import type { OpenConnection } from './report.ts'

/** Maximum open connections that are noted. Further ones are only counted. */
export const MAX_NOTED_CONNECTIONS = 64

const ROW_BYTES = 1024
const MAX_BYTES = ROW_BYTES * (1 + MAX_NOTED_CONNECTIONS)

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

export class UseFile {
  readonly #onFault: (error: unknown) => void
  readonly #rows: boolean[] = []
  #fd: number | undefined
  #counts: UseCounts = { allowed: 0, refused: 0, open: 0, sent: 0, received: 0 }
  #isDue = false
  /** What an earlier service has written. */
  readonly found: FoundUse | undefined

  /** `onFault` is called once, and then nothing is written any more. Throws if there can be no file. */
  constructor(path: string, onFault: (error: unknown) => void) {
    this.#onFault = onFault
    this.#fd = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
    const bytes = Buffer.alloc(MAX_BYTES)
    const length = readSync(this.#fd, bytes, 0, MAX_BYTES, 0)
    this.found = foundIn(bytes.subarray(0, length))
    for (let row = 0; length > ROW_BYTES * (row + 1); row++) this.#write(textOf(''), row)
  }

  /** Writes bytes, at the end of this turn. */
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

  /** Notes an open connection. Returns its row; undefined if there is none. */
  add(connection: OpenConnection): number | undefined {
    const text = textOf(JSON.stringify(connection))
    const free = this.#rows.indexOf(false)
    const row = free < 0 ? this.#rows.length : free
    if (row >= MAX_NOTED_CONNECTIONS || text.length > ROW_BYTES) return undefined
    this.#rows[row] = true
    this.#write(text, row)
    return row
  }

  remove(row: number): void {
    this.#rows[row] = false
    this.#write(textOf(''), row)
  }

  close(): void {
    if (this.#isDue) this.now(this.#counts)
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #write(bytes: Uint8Array, row = -1): void {
    if (this.#fd === undefined) return
    try {
      writeSync(this.#fd, bytes, 0, bytes.length, ROW_BYTES * (row + 1))
    } catch (error) {
      closeSync(this.#fd)
      this.#fd = undefined
      this.#onFault(error)
    }
  }
}

/** As it is in a row: the spaces take the place of a longer text. */
const textOf = (json: string): Uint8Array => Buffer.from(json.padEnd(ROW_BYTES))

/** Undefined if the file is new, or of another form. */
function foundIn(bytes: Buffer): FoundUse | undefined {
  const numbers = Array.from({ length: 6 }, (_, i) => (bytes.length < 48 ? Number.NaN : bytes.readDoubleLE(8 * i)))
  const [format, allowed, refused, open, sent, received] = numbers as [number, number, number, number, number, number]
  if (format !== FORMAT || !numbers.every((number) => Number.isSafeInteger(number) && number >= 0)) return undefined
  const connections: OpenConnection[] = []
  for (let at = ROW_BYTES; at < bytes.length; at += ROW_BYTES) {
    const value = jsonOrUndefined(bytes.toString('utf8', at, at + ROW_BYTES).replaceAll('\0', ''))
    if (isObject(value)) connections.push(value as unknown as OpenConnection)
  }
  return { counts: { allowed, refused, open, sent, received }, connections }
}

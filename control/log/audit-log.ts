/**
 * Who asked for what: `<data-dir>/audit.ndjson`, and earlier files `audit.<n>.ndjson`, the newest with the lowest number.
 *
 * A request that changes something has a line before it acts, and another with the same id once it is answered. So a request
 * that was carried out has a line even if the service was killed before the answer. Lines are written at once, and synced within
 * a second. A disk that refuses a line refuses no request: the log says so, and the next line that is written counts what is
 * missing.
 */
import { closeSync, fstatSync, openSync, readSync, renameSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { AuditRecord } from '../../shared/contract/audit.ts'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { syncData } from './segment.ts'

/** Bytes of a file. */
export const MAX_AUDIT_FILE_BYTES = 64 * 1024 * 1024

/** Files, with the one that is written. */
export const MAX_AUDIT_FILES = 4

/** Milliseconds between two syncs. */
const SYNC_MS = 1_000

/** Bytes that are read at a time, from the end of a file. */
const BLOCK_BYTES = 256 * 1024

/** What is known of a request when it comes. */
export type Asked = Omit<AuditRecord, 'id' | 'time' | 'graph_id' | 'status'>

/** What is known of it once it is answered. */
export type Answered = Pick<AuditRecord, 'status' | 'graph_id'>

export interface AuditPage {
  /** Milliseconds since 1970. Older records are left out. */
  readonly since: number
  /** Records before the one with this id. */
  readonly before: string | undefined
  readonly limit: number
}

/** Where records are kept: in a file, or in the database of all replicas. */
export interface AuditLog {
  /** Writes the record of a request that has just come, and returns its id. */
  begin(asked: Asked): string
  /** Resolves once the records that came so far are written, or cannot be. Absent if `begin` has written them. */
  written?(): Promise<void>
  /** Writes what became of the request. */
  end(id: string, answered: Answered): void
  /** The newest records of a page, newest first, and whether there are more. */
  read(page: AuditPage): Promise<{ records: AuditRecord[]; hasMore: boolean }>
  close(): Promise<void>
}

/** The ids of records: of times, with counts of those of the same millisecond. */
export class AuditIds {
  #lastMs = 0
  #count = 0

  /** Greater than all earlier ones, also of earlier runs unless the clock was set back. */
  next(now: number): string {
    this.#count = now > this.#lastMs ? 0 : this.#count + 1
    this.#lastMs = Math.max(now, this.#lastMs)
    return `${idsSince(this.#lastMs)}-${this.#count.toString(36).padStart(4, '0')}`
  }
}

/** Not greater than any id of this time (milliseconds since 1970) or later. */
export const idsSince = (ms: number): string => ms.toString(36).padStart(9, '0')

export interface AuditFilesOptions {
  readonly dataDir: string
  readonly log: Log
  readonly maxFileBytes?: number
}

export class AuditFiles implements AuditLog {
  readonly #dataDir: string
  readonly #log: Log
  readonly #maxFileBytes: number
  readonly #timer: Timer
  readonly #ids = new AuditIds()
  #fd: number | undefined
  #size = 0
  #isSynced = true
  /** Lines that the disk refused. */
  #lost = 0
  #isTorn = false

  /** Nothing is written before the first request. */
  constructor({ dataDir, log, maxFileBytes = MAX_AUDIT_FILE_BYTES }: AuditFilesOptions) {
    this.#dataDir = dataDir
    this.#log = log
    this.#maxFileBytes = maxFileBytes
    this.#timer = setInterval(() => void this.#sync(), SYNC_MS).unref()
  }

  begin(asked: Asked): string {
    const now = Date.now()
    const id = this.#ids.next(now)
    this.#write({ id, time: new Date(now).toISOString(), ...asked })
    return id
  }

  end(id: string, answered: Answered): void {
    this.#write({ id, ...answered })
  }

  async read({ since, before, limit }: AuditPage): Promise<{ records: AuditRecord[]; hasMore: boolean }> {
    const records: AuditRecord[] = []
    const answers = new Map<string, object>()
    for await (const line of this.#linesFromEnd()) {
      const entry = jsonOrUndefined(line)
      if (!isObject(entry) || typeof entry.id !== 'string') continue
      const { id } = entry
      if (typeof entry.time !== 'string') {
        answers.set(id, entry)
        continue
      }
      const answer = answers.get(id)
      answers.delete(id)
      if (Date.parse(entry.time) < since) break
      if (before !== undefined && id >= before) continue
      if (records.length === limit) return { records, hasMore: true }
      records.push({ ...entry, ...answer } as unknown as AuditRecord)
    }
    return { records, hasMore: false }
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sync()
    if (this.#fd !== undefined) closeSync(this.#fd)
    this.#fd = undefined
  }

  #pathOf(number: number): string {
    return join(this.#dataDir, number === 0 ? 'audit.ndjson' : `audit.${number}.ndjson`)
  }

  #write(entry: object): void {
    const lost = this.#lost > 0 ? `${JSON.stringify({ lost: this.#lost })}\n` : ''
    try {
      this.#fd ??= this.#open()
      const bytes = Buffer.from(`${this.#isTorn ? '\n' : ''}${lost}${JSON.stringify(entry)}\n`)
      if (this.#size > 0 && this.#size + bytes.length > this.#maxFileBytes) this.#beginAnew()
      for (let at = 0; at < bytes.length; ) {
        this.#isTorn = at > 0 || this.#isTorn
        const written = writeSync(this.#fd, bytes, at)
        at += written
        this.#size += written
      }
      this.#isTorn = false
      this.#isSynced = false
      if (this.#lost > 0) this.#log.info('the audit log can be written again', { lost: this.#lost })
      this.#lost = 0
    } catch (error) {
      if (this.#lost++ === 0) this.#log.error('the audit log cannot be written', { cause: messageOf(error) })
    }
  }

  /** A power failure may have left half a line at the end. */
  #open(): number {
    const fd = openSync(this.#pathOf(0), 'a+', 0o600)
    this.#size = fstatSync(fd).size
    const last = Buffer.alloc(1)
    this.#isTorn = this.#size > 0 && readSync(fd, last, 0, 1, this.#size - 1) === 1 && last[0] !== 0x0a
    return fd
  }

  #beginAnew(): void {
    for (let number = MAX_AUDIT_FILES - 1; number > 0; number--) {
      try {
        renameSync(this.#pathOf(number - 1), this.#pathOf(number))
      } catch (error) {
        if (systemCodeOf(error) !== 'ENOENT') throw error
      }
    }
    const before = this.#fd!
    this.#fd = this.#open()
    closeSync(before)
  }

  async #sync(): Promise<void> {
    if (this.#isSynced || this.#fd === undefined) return
    this.#isSynced = true
    try {
      await syncData(this.#fd)
    } catch (error) {
      this.#log.error('the audit log cannot be written', { cause: messageOf(error) })
    }
  }

  /** All lines, the newest first. A line that is written meanwhile is left out. */
  async *#linesFromEnd(): AsyncGenerator<string> {
    for (let number = 0; number < MAX_AUDIT_FILES; number++) {
      try {
        await using file = await open(this.#pathOf(number), 'r')
        let { size: end } = await file.stat()
        let rest = Buffer.alloc(0)
        while (end > 0) {
          const start = Math.max(0, end - BLOCK_BYTES)
          const block = Buffer.alloc(end - start)
          await file.read(block, 0, block.length, start)
          const lines = Buffer.concat([block, rest])
          // What comes before the first line end may begin in the block before.
          const first = start === 0 ? 0 : lines.indexOf(0x0a) + 1
          const whole = lines.subarray(first).toString().split('\n').toReversed()
          rest = lines.subarray(0, first)
          end = start
          yield* whole
        }
      } catch (error) {
        if (systemCodeOf(error) !== 'ENOENT') throw error
      }
    }
  }
}

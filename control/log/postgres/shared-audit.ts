/**
 * Who asked for what, of all replicas: a row for each request that may change something.
 *
 * The row is there before its request acts (`written`), and is completed once the request is answered. Rows are written in
 * batches, one after the other. A database that does not take a batch refuses no request: the log says so, no request waits until
 * the next batch is written, and the next row counts what is missing.
 */
import type { AuditRecord } from '../../../shared/contract/audit.ts'
import { messageOf } from '../../../shared/contract/errors.ts'
import type { Log } from '../../../shared/logs/log.ts'
import { type Answered, type Asked, AuditIds, type AuditLog, type AuditPage, idsSince } from '../audit-log.ts'
import type { Database } from './database.ts'
import type { ReplicaRows } from './replica-rows.ts'
import { SCHEMA } from './schema-name.ts'
import { refuseAway } from './unavailable.ts'

/** Records that are kept of all replicas together. */
export const MAX_AUDIT_RECORDS = 1_000_000

/** Records of a replica that wait for the batch before. Further ones are lost. */
export const MAX_WAITING_AUDIT_RECORDS = 10_000

/** The oldest records are removed as often as this part of all has come to a replica. */
const SWEEPS = 100

/** Greater than all ids. */
const AFTER_ALL = '~'

export interface SharedAuditOptions {
  readonly database: Pick<Database, 'settings' | 'soon'>
  readonly replica: Pick<ReplicaRows, 'id'>
  readonly log: Log
  readonly maxRecords?: number
}

interface Row {
  /** Absent if an earlier batch had it. */
  readonly record?: object
  readonly answer?: Answered
}

class Batch {
  /** By id of the record. */
  readonly rows = new Map<string, Row>()
  readonly over = Promise.withResolvers<void>()
}

export class SharedAudit implements AuditLog {
  readonly #options: SharedAuditOptions
  readonly #ids = new AuditIds()
  #next = new Batch()
  #underWay: Batch | undefined
  #writing: Promise<void> | undefined
  /** Records that were not written since the last one that was. */
  #lost = 0
  #untilSweep = 0
  #isClosed = false

  constructor(options: SharedAuditOptions) {
    this.#options = options
  }

  begin(asked: Asked): string {
    const now = Date.now()
    const { id: replica } = this.#options.replica
    const id = `${this.#ids.next(now)}-${replica.toString(36)}`
    this.#add(id, { record: { id, time: new Date(now).toISOString(), ...asked, replica } })
    return id
  }

  end(id: string, answer: Answered): void {
    this.#add(id, { answer })
  }

  async written(): Promise<void> {
    if (this.#lost > 0) return
    const last = this.#next.rows.size > 0 ? this.#next : this.#underWay
    await last?.over.promise
  }

  /** Throws 503. */
  async read({ since, before = AFTER_ALL, limit }: AuditPage): Promise<{ records: AuditRecord[]; hasMore: boolean }> {
    await this.written()
    const rows: { record: string; answer: string | null }[] = await this.#options.database
      .soon(
        (sql) => sql`
          select record, answer from ${sql(SCHEMA)}.audit
          where id >= ${idsSince(since)} and id < ${before.replaceAll('\0', '')} order by id desc limit ${limit + 1}`,
      )
      .catch(refuseAway)
    const records = rows.slice(0, limit).map(({ record, answer }) => ({
      ...(JSON.parse(record) as AuditRecord),
      ...(answer !== null && (JSON.parse(answer) as Answered)),
    }))
    return { records, hasMore: rows.length > limit }
  }

  /** Writes the last batch. Later records are dropped. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#writing
  }

  #add(id: string, row: Row): void {
    if (this.#isClosed) return
    const { rows } = this.#next
    if (rows.size >= MAX_WAITING_AUDIT_RECORDS && !rows.has(id)) this.#lost++
    else rows.set(id, { ...rows.get(id), ...row })
    this.#writing ??= this.#write()
  }

  async #write(): Promise<void> {
    await Promise.resolve() // requests of one moment share a batch
    while (this.#next.rows.size > 0) {
      const batch = this.#next
      this.#underWay = batch
      this.#next = new Batch()
      await this.#keep(batch.rows)
      batch.over.resolve()
    }
    this.#underWay = undefined
    this.#writing = undefined
  }

  async #keep(rows: Batch['rows']): Promise<void> {
    const { log } = this.#options
    const lost = this.#lost
    const firstId = [...rows].find(([, { record }]) => record !== undefined)?.[0]
    const texts = [...rows].map(([id, { record, answer }]) => ({
      ...{ id, answer: answer === undefined ? null : JSON.stringify(answer) },
      record: record === undefined ? null : JSON.stringify(id === firstId && lost > 0 ? { ...record, lost } : record),
    }))
    try {
      await this.#insert(texts)
      if (firstId === undefined) return
      this.#lost -= lost
      if (lost > 0) log.info('the audit log can be written again', { lost })
    } catch (error) {
      if (lost === 0) log.error('the audit log cannot be written', { cause: messageOf(error) })
      this.#lost += texts.length
      return
    }
    this.#untilSweep -= texts.length
    if (this.#untilSweep <= 0) void this.#sweep().catch(() => {}) // the next one removes more
  }

  /** May be repeated. */
  #insert(texts: readonly object[]): Promise<unknown> {
    const { database } = this.#options
    return database.soon((sql) =>
      sql.unsafe(
        `with settings as materialized (select ${database.settings}),
           x as materialized (select x.* from json_to_recordset($1::json) x (id text, record text, answer text), settings),
           answered as (update ${SCHEMA}.audit a set answer = x.answer from x where x.record is null and a.id = x.id)
         insert into ${SCHEMA}.audit (id, record, answer)
           select id, record, answer from x where record is not null on conflict (id) do nothing`,
        [texts],
      ),
    )
  }

  async #sweep(): Promise<void> {
    const { database, maxRecords = MAX_AUDIT_RECORDS } = this.#options
    this.#untilSweep = maxRecords / SWEEPS
    await database.soon(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(database.settings)}),
        last as (select id from ${sql(SCHEMA)}.audit order by id desc offset ${maxRecords} limit 1)
        delete from ${sql(SCHEMA)}.audit a using settings, last where a.id <= last.id`,
    )
  }
}

/**
 * The replicas in the database: this one, those that are alive, and those that are gone.
 *
 * A replica is one run of a service. Its row has the lease, which ends by itself in the clock of the database.
 */
import type { SQL } from 'bun'
import { UsageError } from '../../../shared/contract/errors.ts'
import { MAX_BLOCK } from '../number-blocks.ts'
import { CHANNEL, type Database, type RepeatOptions } from './database.ts'
import { SCHEMA } from './schema-name.ts'

/** Replicas register one after the other. */
const REGISTRATION_LOCK = 7_204_312

/** A replica, as others see it. */
export interface OtherReplica {
  readonly id: number
  /** Where it is reached; empty while it starts. */
  readonly address: string
}

export interface LiveReplica extends OtherReplica {
  /** Milliseconds until its lease is over, in the clock of the database. Negative: it is. */
  readonly leaseMs: number
}

export interface ReplicaRowsOptions {
  readonly leaseMs: number
  readonly lockId?: string | undefined
  readonly cluster?: string
  /** Whether it has a directory of schedules. Absent: it has none. */
  readonly hasSchedulesDir?: boolean
}

export class ReplicaRows {
  readonly #database: Database
  readonly leaseMs: number
  readonly #lockId: string | undefined
  readonly #cluster: string
  readonly hasSchedulesDir: boolean
  /** The number of this replica: higher than that of every one before it. */
  id = 0
  epoch = 0
  /** Numbers of replicas with the same lock that were not declared dead before. */
  readonly predecessors = new Set<number>()

  /** `lockId` is that of the data directory, as of `lockIdOf`. */
  constructor(database: Database, { leaseMs, lockId, cluster = '', hasSchedulesDir = false }: ReplicaRowsOptions) {
    this.#database = database
    this.leaseMs = leaseMs
    this.#lockId = lockId
    this.#cluster = cluster
    this.hasSchedulesDir = hasSchedulesDir
  }

  /**
   * Registers this replica. Returns the replica of an earlier version that still has all graphs, if there is one: then
   * nothing is registered. `mayBury` declares that one dead if its lease is over.
   *
   * Replicas with the same lock are declared dead before the end of their leases: their processes have ended. A turn of such
   * a process that the server still executes has locked the row, so this waits for it. A turn that the server gets later
   * finds the replica dead. `options` limit how long that may take, as somebody else may have locked the row for ever.
   */
  async register(
    mayBury: boolean,
    options?: Pick<RepeatOptions, 'mayRepeat' | 'onFault'>,
  ): Promise<OtherReplica | undefined> {
    return await this.#database.repeat(
      (sql) =>
        sql.begin(async (transaction) => {
          const table = transaction(`${SCHEMA}.replica`)
          await transaction.unsafe(`select ${this.#database.settings}`)
          await transaction.unsafe(`select pg_advisory_xact_lock(${REGISTRATION_LOCK})`)
          await this.#joinCluster(transaction)
          if (mayBury) {
            await transaction`
            update ${table} set state = 'dead', epoch = epoch + 1
            where state = 'live' and not is_sharing and lease_until < clock_timestamp()`
          }
          if (this.#lockId !== undefined) {
            const ended: { id: string }[] = await transaction`
            update ${table} set state = 'dead', epoch = epoch + 1
            where state = 'live' and lock_id = ${this.#lockId} returning id`
            for (const { id } of ended) this.predecessors.add(Number(id))
          }
          const [active] = await transaction`select id, address from ${table} where state = 'live' and not is_sharing`
          if (active !== undefined) return { id: Number(active.id), address: active.address }
          const [row] = await transaction`
          insert into ${table} (address, lease_until, is_sharing, lock_id)
          values ('', clock_timestamp() + ${this.leaseMs} * interval '1 ms', true, ${this.#lockId ?? null})
          returning id, epoch`
          this.id = checkedBlock(Number(row.id))
          this.epoch = Number(row.epoch)
          return undefined
        }),
      options,
    )
  }

  /** Throws `UsageError` if the schema belongs to another cluster. */
  async #joinCluster(transaction: SQL): Promise<void> {
    const table = transaction(`${SCHEMA}.cluster`)
    const [kept] = await transaction`select name from ${table}`
    const name: string = kept?.name ?? ''
    if (name === this.#cluster) return
    if (name === '') {
      await transaction`insert into ${table} (name) values (${this.#cluster})`
      return
    }
    const own = this.#cluster === '' ? 'no cluster' : `the cluster ${this.#cluster}`
    throw new UsageError(
      `the schema ${SCHEMA} of the database belongs to the cluster ${name}, and this service to ${own}: give --cluster ${name}, or another database, or --database-schema`,
    )
  }

  /** Others reach this replica at `address` from now on, and it submits graphs of schedules. */
  async reachableAt(address: string): Promise<void> {
    await this.#database.repeat(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)})
        update ${sql(SCHEMA)}.replica
        set address = ${address}, submits_schedules = true, has_schedules_dir = ${this.hasSchedulesDir}
        from settings where id = ${this.id}`,
    )
  }

  /** A block of numbers above all that any replica has so far. */
  async nextBlock(): Promise<number> {
    const [row] = await this.#database.repeat((sql) =>
      sql.unsafe(`select nextval(pg_get_serial_sequence('${SCHEMA}.replica', 'id')) as block`),
    )
    return checkedBlock(Number(row.block))
  }

  /** Replicas that nobody has declared dead, this one too. */
  async live(): Promise<LiveReplica[]> {
    const rows = await this.#database.soon(
      (sql) => sql`
        select id, address, extract(epoch from lease_until - clock_timestamp()) * 1000 as lease_ms
        from ${sql(SCHEMA)}.replica where state = 'live' order by id`,
    )
    return rows.map((row: { id: string; address: string; lease_ms: string }) => {
      return { id: Number(row.id), address: row.address, leaseMs: Math.floor(Number(row.lease_ms)) }
    })
  }

  /**
   * Declares others dead whose lease is over. Returns their numbers. One whose row is locked comes later: it writes a turn,
   * or a session that nobody ends has the lock, and the others must not wait for that.
   */
  async buryLate(): Promise<number[]> {
    const rows = await this.#database.soon(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)}),
        late as (
          select r.id from ${sql(SCHEMA)}.replica r
          where r.state = 'live' and r.lease_until < clock_timestamp() and r.id <> ${this.id} for update skip locked)
        update ${sql(SCHEMA)}.replica r set state = 'dead', epoch = epoch + 1 from settings, late
        where r.id = late.id returning r.id`,
    )
    return rows.map(({ id }: { id: string }) => Number(id))
  }

  /** Gives the lease back, with all graphs, and rings. */
  async release(): Promise<void> {
    await this.#database.once(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)}),
        gone as (
          update ${sql(SCHEMA)}.replica set state = 'gone' from settings
          where id = ${this.id} and epoch = ${this.epoch} and state = 'live' returning id)
        select pg_notify(${CHANNEL}, '') from gone`,
    )
  }

  /** Removes the rows of replicas that are gone for a day and own nothing. */
  async sweep(): Promise<void> {
    await this.#database.repeat((sql) => {
      const schema = sql(SCHEMA)
      return sql`
        delete from ${schema}.replica where id in (
          select id from ${schema}.replica r where state <> 'live' and lease_until < clock_timestamp() - interval '1 day'
            and not exists (select from ${schema}.graph g where g.owner = r.id) for update skip locked)`
    })
  }
}

function checkedBlock(block: number): number {
  if (block <= MAX_BLOCK) return block
  throw new UsageError(`the database has had ${MAX_BLOCK} replicas and takeovers: make a new one`)
}

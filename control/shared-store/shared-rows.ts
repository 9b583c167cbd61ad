/**
 * The rows in the database: turns of this replica, the lease, and what is looked up.
 *
 * A query that fails because the server is away, silent or a standby is repeated on the next address. A turn may be
 * repeated safely: its number tells whether an earlier try was committed. Two tries never overlap, because both lock the
 * row of the replica.
 */
import type { SQL } from 'bun'
import { UsageError } from '../../shared/errors.ts'
import { GrowingPause } from '../../shared/growing-pause.ts'
import type { Log } from '../../shared/log.ts'
import type { KeptKey, SentKey } from '../journal/idempotency.ts'
import { type DatabaseFault, databaseFault } from './database-fault.ts'
import type { DatabaseUrl } from './database-url.ts'
import type { GraphRows } from './recovered-graphs.ts'
import { SCHEMA } from './schema-name.ts'
import { Servers } from './servers.ts'
import { makeTables } from './shared-schema.ts'
import type { TurnWrites } from './turn-writes.ts'
import { ANSWER_WITHIN_MS } from './unavailable.ts'

/** Pauses between two tries of a query. */
const PAUSES = { firstMs: 20, longestMs: 1_000 }

/** Replicas take the lease one after the other. */
const ACTIVATION_LOCK = 7_204_312

/** Numbers of graphs and of changes begin with the number of the replica times this. A replica is one run of a service. */
export const FIRST_OF_REPLICA = 10_000_000_000

/** Replicas of one database. Numbers of later ones would have more digits than cursors of lists may. */
const MAX_REPLICAS = 99_999

/** Another replica has taken over the graphs of this one, or the database has lost turns. */
export class Fenced extends Error {
  override name = 'Fenced'
}

/** A unique value is in use elsewhere. Nothing was written. */
export class InUse extends Error {
  override name = 'InUse'
}

/** A graph with all that is kept of it. */
export interface KeptGraph extends GraphRows {
  readonly ordinal: number
  /** The highest number of its frames. */
  readonly lastFrame: number
  /** Ids of its tasks that no other graph has taken over since. */
  readonly ownIds: ReadonlySet<string>
}

/** The replica that has the lease. */
export interface ActiveReplica {
  readonly id: number
  readonly address: string
}

export interface SharedRowsOptions {
  /** The primary and its standbys. */
  readonly urls: readonly DatabaseUrl[]
  readonly leaseMs: number
  /** Milliseconds for an answer of the database. */
  readonly answerMs: number
  readonly log: Log
}

interface Replica {
  readonly id: number
  readonly epoch: number
}

export class SharedRows {
  readonly #options: SharedRowsOptions
  readonly #servers: Servers
  #replica: Replica = { id: 0, epoch: 0 }
  /** The last turn that was committed for certain. */
  #turn = 0
  #isClosed = false

  constructor(options: SharedRowsOptions) {
    this.#options = options
    this.#servers = new Servers(options)
  }

  /** The number of this replica: higher than that of every one before it. */
  get id(): number {
    return this.#replica.id
  }

  get epoch(): number {
    return this.#replica.epoch
  }

  /**
   * Makes the tables. Rejects with a `DatabaseFault`, after `timeoutMs` if it may pass, or with `UsageError` for a
   * database that would lose what it has confirmed.
   */
  async open(timeoutMs: number): Promise<void> {
    await this.#repeat(async (sql) => {
      await assertDurable(sql)
      await makeTables(sql, this.#servers.settings)
    }, within(timeoutMs))
  }

  /**
   * Takes the lease. Returns the replica that has it, if there is one. `mayBury` declares that one dead if its lease is
   * over.
   */
  async activate(address: string, mayBury: boolean): Promise<ActiveReplica | undefined> {
    const { leaseMs } = this.#options
    return await this.#repeat((sql) =>
      sql.begin(async (transaction) => {
        const table = transaction(`${SCHEMA}.replica`)
        await transaction.unsafe(`select ${this.#servers.settings}`)
        await transaction.unsafe(`select pg_advisory_xact_lock(${ACTIVATION_LOCK})`)
        if (mayBury) {
          await transaction`
            update ${table} set state = 'dead', epoch = epoch + 1
            where state = 'live' and lease_until < clock_timestamp()`
        }
        const [active] = await transaction`select id, address from ${table} where state = 'live'`
        if (active !== undefined) return { id: Number(active.id), address: active.address }
        const [row] = await transaction`
          insert into ${table} (address, lease_until) values (${address}, clock_timestamp() + ${leaseMs} * interval '1 ms')
          returning id, epoch`
        this.#replica = { id: Number(row.id), epoch: Number(row.epoch) }
        if (this.id > MAX_REPLICAS) throw new Error(`the database has had ${MAX_REPLICAS} replicas: make a new one`)
        return undefined
      }),
    )
  }

  /** Resolves when `writes` are committed. Rejects with `InUse`, and then nothing was written, or with `Fenced`. */
  async turn(writes: TurnWrites): Promise<void> {
    const number = this.#turn + 1
    const characters = [...writes.graphs, ...writes.frames].reduce((sum, { payload }) => sum + payload.length, 0)
    const isDone = await this.#repeat((sql) => this.#writeTurn(sql, number, writes), { characters })
    if (!isDone) await this.#repeat((sql) => this.#assertCommitted(sql, number))
    this.#turn = number
  }

  async #writeTurn(sql: SQL, number: number, writes: TurnWrites): Promise<boolean> {
    const { graphs, frames } = writes
    const { id, epoch } = this.#replica
    const { leaseMs } = this.#options
    const schema = sql(SCHEMA)
    const keys = graphs.flatMap(({ key }) => key ?? [])
    const ids = graphs.flatMap(({ ordinal, taskIds }) => taskIds.map((taskId) => [taskId, ordinal] as const))
    const texts = (values: readonly string[]) => sql.array([...values], 'TEXT')
    const numbers = (values: readonly number[]) => sql.array([...values], 'BIGINT')
    const [row] = await sql`
      with settings as materialized (select ${sql.unsafe(this.#servers.settings)}),
      fence as (
        update ${schema}.replica set turn = ${number}, lease_until = clock_timestamp() + ${leaseMs} * interval '1 ms'
        where id = ${id} and epoch = ${epoch} and state = 'live' and turn = ${number - 1}
          and (select count(*) from settings) = 1
        returning id),
      g as (insert into ${schema}.graph (ordinal, graph_id, payload)
        select x.ordinal, x.graph_id, x.payload
        from unnest(${numbers(graphs.map(({ ordinal }) => ordinal))}, ${texts(graphs.map((graph) => graph.id))},
          ${texts(graphs.map(({ payload }) => payload))}) x (ordinal, graph_id, payload), fence),
      t as (insert into ${schema}.task_id (id, graph)
        select x.id, x.graph from unnest(${texts(ids.map(([taskId]) => taskId))}, ${numbers(ids.map(([, ordinal]) => ordinal))})
          x (id, graph), fence),
      f as (insert into ${schema}.frame (graph, number, payload)
        select x.graph, x.number, x.payload
        from unnest(${numbers(frames.map(({ ordinal }) => ordinal))}, ${numbers(frames.map((frame) => frame.number))},
          ${texts(frames.map(({ payload }) => payload))}) x (graph, number, payload), fence),
      a as (insert into ${schema}.answer (scope, key, hash, answer, at)
        select x.* from unnest(${texts(keys.map(({ scope }) => scope))}, ${texts(keys.map(({ key }) => key))},
          ${texts(keys.map(({ hash }) => hash))}, ${texts(keys.map(({ answer }) => answer))},
          ${numbers(keys.map(({ at }) => at))}) x, fence)${this.#deletions(sql, writes)}
      select count(*)::int as done from fence`
    return row.done === 1
  }

  /** Few turns delete something, and plans of deletions cost as much as the rest of a turn. */
  #deletions(sql: SQL, { removed, freedIds, freedKeys, unusedResults }: TurnWrites) {
    if (removed.length + freedIds.length + freedKeys.length + unusedResults.length === 0) return sql``
    const schema = sql(SCHEMA)
    const texts = (values: readonly string[]) => sql.array([...values], 'TEXT')
    const numbers = (values: readonly number[]) => sql.array([...values], 'BIGINT')
    const freed = numbers(freedIds.map(([ordinal]) => ordinal))
    return sql`,
      dg as (delete from ${schema}.graph o using fence, unnest(${numbers(removed)}) x (graph) where o.ordinal = x.graph),
      dt as (delete from ${schema}.task_id o using fence, unnest(${numbers(removed)}) x (graph) where o.graph = x.graph),
      df as (delete from ${schema}.frame o using fence, unnest(${numbers(removed)}) x (graph) where o.graph = x.graph),
      dr as (delete from ${schema}.result o using fence, unnest(${numbers(removed)}) x (graph) where o.graph = x.graph),
      du as (delete from ${schema}.result o using fence, unnest(${texts(unusedResults)}) x (name) where o.name = x.name),
      di as (delete from ${schema}.task_id o using fence, unnest(${freed}, ${texts(freedIds.map(([, id]) => id))})
        x (graph, id) where o.id = x.id and o.graph = x.graph),
      da as (delete from ${schema}.answer o using fence,
        unnest(${texts(freedKeys.map(({ scope }) => scope))}, ${texts(freedKeys.map(({ key }) => key))}) x (scope, key)
        where o.scope = x.scope and o.key = x.key)`
  }

  /** The fence let no turn `number` pass: an earlier try was committed, or the replica is fenced. */
  async #assertCommitted(sql: SQL, number: number): Promise<void> {
    const { id, epoch } = this.#replica
    const [row] = await sql`select epoch, state, turn from ${sql(SCHEMA)}.replica where id = ${id}`
    if (row === undefined) throw new Fenced(`the database knows no replica ${id} any more`)
    if (Number(row.epoch) !== epoch || row.state !== 'live') throw new Fenced(`replica ${id} was declared dead`)
    if (Number(row.turn) === number) return
    throw new Fenced(`the database has turn ${row.turn} of replica ${id}, and ${number} was expected: it lost commits`)
  }

  /** At most `limit` graphs with numbers above `after`, in their order. */
  async graphsAfter(after: number, limit: number): Promise<KeptGraph[]> {
    return await this.#repeat(async (sql) => {
      const schema = sql(SCHEMA)
      const graphs: { ordinal: string; payload: string }[] = await sql`
        select ordinal, payload from ${schema}.graph where ordinal > ${after} order by ordinal limit ${limit}`
      const ordinals = sql.array(
        graphs.map(({ ordinal }) => Number(ordinal)),
        'BIGINT',
      )
      type FrameRow = { graph: string; number: string; payload: string }
      type IdRow = { graph: string; id: string }
      const [frames, ids]: [FrameRow[], IdRow[]] = await Promise.all([
        sql`select graph, number, payload from ${schema}.frame where graph = any(${ordinals}) order by graph, number`,
        sql`select graph, id from ${schema}.task_id where graph = any(${ordinals})`,
      ])
      const framesOf = Map.groupBy(frames, ({ graph }) => graph)
      const idsOf = Map.groupBy(ids, ({ graph }) => graph)
      return graphs.map(({ ordinal, payload }) => {
        const own = framesOf.get(ordinal) ?? []
        return {
          ordinal: Number(ordinal),
          graph: payload,
          frames: own.map((frame) => frame.payload),
          lastFrame: Number(own.at(-1)?.number ?? 0),
          ownIds: new Set((idsOf.get(ordinal) ?? []).map(({ id }) => id)),
        }
      })
    })
  }

  /** The answer to a request with this key. */
  async answer({ scope, key }: SentKey): Promise<KeptKey | undefined> {
    return await this.#repeat(async (sql) => {
      const [row] = await sql`
        select hash, answer, at from ${sql(SCHEMA)}.answer where scope = ${scope} and key = ${key}`
      return row === undefined ? undefined : { scope, key, hash: row.hash, answer: row.answer, at: Number(row.at) }
    }, within(ANSWER_WITHIN_MS))
  }

  /** Removes answers from before `at` (milliseconds since 1970), and replicas that are gone for a day. */
  async sweep(at: number): Promise<void> {
    await this.#repeat(async (sql) => {
      const schema = sql(SCHEMA)
      await sql`delete from ${schema}.answer where at < ${at}`
      await sql`
        delete from ${schema}.replica where state <> 'live' and lease_until < clock_timestamp() - interval '1 day'`
    })
  }

  /** Keeps a large result. The same name has the same content. */
  async keepResult(name: string, ordinal: number, json: string): Promise<void> {
    await this.#repeat(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#servers.settings)})
        insert into ${sql(SCHEMA)}.result (name, graph, json) select ${name}, ${ordinal}, ${json} from settings
        on conflict (name) do nothing`,
      { characters: json.length },
    )
  }

  async readResult(name: string): Promise<string | undefined> {
    return await this.#repeat(async (sql) => {
      const [row] = await sql`select json from ${sql(SCHEMA)}.result where name = ${name}`
      return row?.json
    }, within(ANSWER_WITHIN_MS))
  }

  /** Gives the lease back. */
  async release(): Promise<void> {
    const { id, epoch } = this.#replica
    await this.#servers.use(
      (sql) =>
        sql`update ${sql(SCHEMA)}.replica set state = 'gone' where id = ${id} and epoch = ${epoch} and state = 'live'`,
    )
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#servers.close()
  }

  /** Repeats `work`, which sends so many `characters`, while it fails for a reason that may pass. `mayRepeat` limits that. */
  async #repeat<T>(
    work: (sql: SQL) => Promise<T>,
    {
      mayRepeat = () => true,
      characters = 0,
    }: { readonly mayRepeat?: () => boolean; readonly characters?: number } = {},
  ): Promise<T> {
    const pauses = new GrowingPause(PAUSES)
    for (;;) {
      try {
        return await this.#servers.use(work, characters)
      } catch (error) {
        if (error instanceof Fenced || error instanceof UsageError) throw error
        const fault = databaseFault(error)
        if (fault.kind === 'in-use') throw new InUse(fault.message, { cause: fault })
        if (!mayPass(fault) || this.#isClosed || !mayRepeat()) throw fault
        await Bun.sleep(pauses.next())
      }
    }
  }
}

/** Throws `UsageError` for a server that confirms what a crash would undo. */
async function assertDurable(sql: SQL): Promise<void> {
  const [row] =
    await sql`select current_setting('fsync') as fsync, current_setting('server_version_num')::int as version`
  if (row.fsync === 'off')
    throw new UsageError('the database runs with fsync = off: a crash would lose accepted graphs')
  if (row.version < OLDEST_VERSION) throw new UsageError('the database is older than PostgreSQL 13')
}

const OLDEST_VERSION = 130_000

/** Repeats a query for at most `ms` milliseconds. */
function within(ms: number): { readonly mayRepeat: () => boolean } {
  const until = performance.now() + ms
  return { mayRepeat: () => performance.now() < until }
}

/** Faults that pass: the query is repeated. */
const PASSES: ReadonlySet<DatabaseFault['kind']> = new Set([
  ...(['away', 'silent', 'read-only', 'too-many-connections', 'full', 'contended'] as const),
])

/** Whether a query may succeed later that failed with `fault`. */
export const mayPass = ({ kind }: DatabaseFault): boolean => PASSES.has(kind)

/**
 * The rows in the database: the turns of this replica, answers and results.
 *
 * A turn may be repeated safely: its number tells whether an earlier try was committed. Two tries never overlap, because
 * both lock the row of the replica.
 */
import type { SQL } from 'bun'
import type { Log } from '../../../shared/logs/log.ts'
import type { LastToGo, SharedRoom } from '../../task/retention.ts'
import type { TaskNumbers } from '../../task/task-count.ts'
import type { KeptKey, SentKey } from '../idempotency.ts'
import type { StoredCallbacks } from '../kept-callbacks.ts'
import { AdoptionRows, SET_ASIDE } from './adoption-rows.ts'
import { Database, type DatabaseOptions, mayPassAgain, Settled } from './database.ts'
import type { DatabaseFault } from './database-fault.ts'
import { ReplicaRows } from './replica-rows.ts'
import { SCHEMA } from './schema-name.ts'
import { sweepCallbacks, takeCallbacks } from './shared-callbacks.ts'
import { writeTurn } from './turn-statement.ts'
import type { TurnNews, TurnWrites } from './turn-writes.ts'
import { CHARACTERS_PER_MS } from './unavailable.ts'

/** Milliseconds for reading a large result. A task that needs it fails without it. */
const RESULT_WITHIN_MS = 10_000

/** Another replica has taken over the graphs of this one, or the database has lost turns. */
export class Fenced extends Settled {
  override name = 'Fenced'
}

export interface SharedRowsOptions extends DatabaseOptions {
  readonly leaseMs: number
  /** The lock of the data directory. Undefined: nothing shows that an earlier replica of the directory has ended. */
  readonly lockId?: string | undefined
  /** The name of the cluster. Absent or empty: it has none. */
  readonly cluster?: string
  /** Whether this replica has a directory of schedules. Absent: it has none. */
  readonly hasSchedulesDir?: boolean
}

/** The answer to an earlier request. */
export interface KnownAnswer extends KeptKey {
  /** The graph that was accepted with it. Absent for what changed a graph, and for answers of earlier versions. */
  readonly graphId?: string | undefined
}

export class SharedRows {
  readonly #database: Database
  readonly #log: Log
  readonly replicas: ReplicaRows
  readonly adoptions: AdoptionRows
  readonly storedTasks: StoredTasks
  /** The tasks that this replica stores. */
  stored: () => TaskNumbers = () => ({ all: 0, ended: 0 })
  /** The last turn that was committed for certain. */
  #turn = 0

  constructor(options: SharedRowsOptions) {
    this.#log = options.log
    this.#database = new Database({ ...options, onRing: (about) => this.onRing(about) })
    this.replicas = new ReplicaRows(this.#database, options)
    this.storedTasks = new StoredTasks(this.#database)
    this.adoptions = new AdoptionRows(this.#database, this.replicas)
  }

  /** Called when another replica has rung, or may have. */
  onRing: (about?: string) => void = () => {}

  /** Called with what each turn tells. */
  onNews: (news: TurnNews) => void = () => {}

  get database(): Database {
    return this.#database
  }

  /** As `Database.open`. */
  open(timeoutMs: number): Promise<void> {
    return this.#database.open(timeoutMs)
  }

  /**
   * Resolves when `writes` are committed. Calls `onFault` before each repetition. Rejects with `InUse`, and then nothing was
   * written, or with `Fenced`.
   */
  async turn(writes: TurnWrites, onFault?: (fault: DatabaseFault) => void): Promise<void> {
    const number = this.#turn + 1
    const { id, epoch, leaseMs } = this.replicas
    const turn = { id, epoch, number, leaseMs, settings: this.#database.settings, stored: this.stored() }
    const characters = [...writes.graphs, ...writes.frames].reduce((sum, { payload }) => sum + payload.length, 0)
    const options = { passes: mayPassAgain, ...(onFault && { onFault }) }
    const extraMs = characters / CHARACTERS_PER_MS
    const answer = await this.#database.repeat((sql) => writeTurn(sql, turn, writes), { ...options, extraMs })
    if (answer === undefined) await this.#database.repeat((sql) => this.#assertCommitted(sql, number), options)
    this.#turn = number
    if (answer === undefined) return
    this.storedTasks.told(answer.others)
    this.onNews(answer)
  }

  /** The fence let no turn `number` pass: an earlier try was committed, or the replica is fenced. */
  async #assertCommitted(sql: SQL, number: number): Promise<void> {
    const { id, epoch } = this.replicas
    const [row] = await sql`select epoch, state, turn from ${sql(SCHEMA)}.replica where id = ${id}`
    if (row === undefined) throw new Fenced(`the database knows no replica ${id} any more`)
    if (Number(row.epoch) !== epoch || row.state !== 'live') throw new Fenced(`replica ${id} was declared dead`)
    if (Number(row.turn) === number) return
    throw new Fenced(`the database has turn ${row.turn} of replica ${id}, and ${number} was expected: it lost commits`)
  }

  /** The answer to a request with this key. */
  async answer({ scope, key }: SentKey): Promise<KnownAnswer | undefined> {
    return await this.#database.soon(async (sql) => {
      const [row] = await sql`
        select hash, answer, at, graph_id from ${sql(SCHEMA)}.answer where scope = ${scope} and key = ${key}`
      if (row === undefined) return undefined
      const { hash, answer, at, graph_id } = row
      return { scope, key, hash, answer, at: Number(at), graphId: graph_id ?? undefined }
    })
  }

  /**
   * Removes answers from before `at` (milliseconds since 1970), callbacks that nobody needs, and replicas that are long
   * gone. The next sweep makes up for one that fails.
   */
  async sweep(at: number): Promise<void> {
    const { settings } = this.#database
    await this.#database.once(async (sql) => {
      await sql`
        with settings as materialized (select ${sql.unsafe(settings)})
        delete from ${sql(SCHEMA)}.answer using settings where at < ${at}`
      await sweepCallbacks(sql, settings)
    })
    await this.replicas.sweep()
  }

  /** Keeps a large result. The same name has the same content. */
  async keepResult(name: string, ordinal: number, json: string): Promise<void> {
    await this.#database.repeat(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)})
        insert into ${sql(SCHEMA)}.result (name, graph, json) select ${name}, ${ordinal}, ${json} from settings
        on conflict (name) do nothing`,
      { extraMs: json.length / CHARACTERS_PER_MS },
    )
  }

  async readResult(name: string): Promise<string | undefined> {
    return await this.#database.soon(async (sql) => {
      const [row] = await sql`select json from ${sql(SCHEMA)}.result where name = ${name}`
      return row?.json
    }, RESULT_WITHIN_MS)
  }

  /** As in `shared-callbacks.ts`, for this replica. */
  async takeCallbacks(graphIds: readonly string[]): Promise<StoredCallbacks> {
    const { settings } = this.#database
    return await this.#database.repeat((sql) => takeCallbacks(sql, settings, this.replicas.id, graphIds, this.#log))
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}

/**
 * The tasks that all replicas store, which share `--max-stored-tasks`.
 *
 * The row of each replica has its numbers, written with each turn, so that nobody counts rows. Those of a replica that is
 * gone do not count before its graphs are adopted. The frame with which a graph ended has the time and the tasks: the
 * graphs of all replicas are found in the order of their ends.
 */
export class StoredTasks implements SharedRoom {
  readonly #database: Pick<Database, 'soon'>
  others: SharedRoom['others'] = { all: 0, ended: 0 }
  onChange: () => void = () => {}

  constructor(database: Pick<Database, 'soon'>) {
    this.#database = database
  }

  /** The numbers of the others, as of the last turn. */
  told(others: SharedRoom['others']): void {
    this.others = others
    this.onChange()
  }

  /**
   * Numbers and graphs are those of one moment: a later page has no later graph, though others have removed some meanwhile.
   * Graphs of replicas that are gone count among the oldest, though nobody can remove them now.
   */
  async lastToGo(count: number, max: number): Promise<LastToGo | undefined> {
    const [row] = await this.#database.soon(
      (sql) => sql`
        with total as (select sum(stored_tasks) + ${count} - ${max} as excess from ${sql(SCHEMA)}.replica where state = 'live')
        select ended_at, graph from (
          select ended_at, graph, sum(tasks) over (order by ended_at, graph) as gone
          from ${sql(SCHEMA)}.frame f join ${sql(SCHEMA)}.graph g on g.ordinal = f.graph
          where ended_at is not null and g.owner > ${SET_ASIDE}) oldest, total
        where excess > 0 and gone >= excess order by ended_at, graph limit 1`,
    )
    return row && { endedAt: Number(row.ended_at), ordinal: Number(row.graph) }
  }
}

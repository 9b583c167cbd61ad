/**
 * The graphs of replicas that are gone: who adopts them, and what is kept of them.
 *
 * Several replicas may adopt at the same time. Each takes rows that no other one has locked, so they share the work.
 */
import type { SQL } from 'bun'
import { inRanges, runCooperatively, type Steps } from '../../../shared/process/steps.ts'
import type { NamedGraph, UnreadableGraph } from '../keeper.ts'
import { blockOf } from '../number-blocks.ts'
import type { Database } from './database.ts'
import type { GraphRows } from './recovered-graphs.ts'
import type { ReplicaRows } from './replica-rows.ts'
import { SCHEMA } from './schema-name.ts'

/** Graphs that are adopted with one statement. */
export const PORTION = 200

/** The owner of graphs whose rows cannot be read. No replica has a negative number. */
export const SET_ASIDE = -1

/** A graph with all that is kept of it. */
export interface KeptGraph extends GraphRows {
  readonly ordinal: number
  /** The highest number of its frames. */
  readonly lastFrame: number
  /** Blocks of the numbers of its changes. */
  readonly blocks: readonly number[]
  /** Whether a frame says when it has ended. */
  readonly hasEnded: boolean
  readonly graphId: string
}

/** A graph that this replica owns. */
export interface AdoptedRow {
  readonly ordinal: number
  /** Bytes of the graph as it was submitted, compressed. */
  readonly size: number
}

/** Where a graph is. */
export interface FoundGraph {
  readonly ordinal: number
  /** The number of its owner. */
  readonly owner: number
  /** Undefined if the owner is gone. */
  readonly address: string | undefined
}

/** A graph with its id. */
export interface FoundById extends FoundGraph {
  readonly graphId: string
  /** Why its rows cannot be read, if it was set aside. */
  readonly unreadable: string | undefined
}

interface Wanted {
  readonly owner: number
  /** Only graphs with higher numbers. */
  readonly after: number
  /** Leaves out graphs that have ended. */
  readonly isLive: boolean
}

export class AdoptionRows {
  readonly #database: Database
  readonly #me: Pick<ReplicaRows, 'id' | 'epoch'>

  constructor(database: Database, me: Pick<ReplicaRows, 'id' | 'epoch'>) {
    this.#database = database
    this.#me = me
  }

  /** Numbers of owners that do not live. 0 stands for the graphs of earlier versions. */
  async ownersGone(): Promise<number[]> {
    const rows = await this.#database.soon((sql) => {
      const schema = sql(SCHEMA)
      return sql`
        with recursive owned as (
          (select owner from ${schema}.graph order by owner limit 1)
          union all
          select (select g.owner from ${schema}.graph g where g.owner > o.owner order by g.owner limit 1)
          from owned o where o.owner is not null)
        select owner from owned o where owner > ${SET_ASIDE}
          and not exists (select from ${schema}.replica r where r.id = o.owner and r.state = 'live')`
    })
    return rows.map(({ owner }: { owner: string }) => Number(owner))
  }

  /**
   * Makes this replica the owner of the next graphs of one that is gone. Returns them in order, none if there are
   * none left. If it rejects, they may have been adopted all the same.
   */
  async adopt({ owner, after, isLive }: Wanted): Promise<AdoptedRow[]> {
    return await this.#database.once(async (sql) => {
      const schema = sql(SCHEMA)
      const stillLive = sql`and not exists (select from ${schema}.frame f where f.graph = g.ordinal and f.ends)`
      return await this.#take(
        sql,
        sql`select g.ordinal from ${schema}.graph g
          where g.owner = ${owner} and g.ordinal > ${after} ${isLive ? stillLive : sql``}
          order by g.ordinal limit ${PORTION} for update skip locked`,
      )
    })
  }

  /** As `adopt`, for one graph. */
  async adoptOne({ ordinal, owner }: Pick<FoundGraph, 'ordinal' | 'owner'>): Promise<AdoptedRow[]> {
    return await this.#database.once(async (sql) =>
      this.#take(
        sql,
        sql`select g.ordinal from ${sql(SCHEMA)}.graph g where g.ordinal = ${ordinal} and g.owner = ${owner} for update`,
      ),
    )
  }

  async #take(sql: SQL, portion: SQL.Query<unknown>): Promise<AdoptedRow[]> {
    const schema = sql(SCHEMA)
    const rows: { ordinal: string; size: number }[] = await sql`
      with settings as materialized (select ${sql.unsafe(this.#database.settings)}),
      portion as (${portion})
      update ${schema}.graph g set owner = ${this.#me.id} from portion p, ${schema}.replica r
      where g.ordinal = p.ordinal and r.id = ${this.#me.id} and r.epoch = ${this.#me.epoch} and r.state = 'live'
        and (select count(*) from settings) = 1
      returning g.ordinal, pg_column_size(g.payload) as size`
    return rows.map(({ ordinal, size }) => ({ ordinal: Number(ordinal), size })).sort((a, b) => a.ordinal - b.ordinal)
  }

  /** The rows of this graph of mine cannot be read: nobody adopts it from now on. Its ids stay taken. */
  async setAside(ordinal: number, why: string): Promise<void> {
    await this.#database.repeat(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)})
        update ${sql(SCHEMA)}.graph set owner = ${SET_ASIDE}, unreadable = ${why.replaceAll('\0', '')},
          unreadable_at = coalesce(unreadable_at, (extract(epoch from clock_timestamp()) * 1000)::bigint)
        from settings where ordinal = ${ordinal} and owner = ${this.#me.id}`,
    )
  }

  /** Graphs that were set aside: those with the highest numbers below `before`. */
  async unreadable(before: number, limit: number): Promise<UnreadableGraph[]> {
    const rows: {
      ordinal: string
      graph_id: string
      unreadable: string | null
      unreadable_at: string
      tasks: number
    }[] = await this.#database.soon((sql) => {
      const schema = sql(SCHEMA)
      return sql`
          select ordinal, graph_id, unreadable, unreadable_at,
            (select count(*)::int from ${schema}.task_id t where t.graph = g.ordinal) as tasks
          from ${schema}.graph g where owner = ${SET_ASIDE} and ordinal < ${before} order by ordinal desc limit ${limit}`
    })
    return rows.map(({ ordinal, graph_id: graphId, unreadable, unreadable_at, tasks }) => {
      return { ordinal: Number(ordinal), graphId, why: unreadable ?? '', at: Number(unreadable_at), taskCount: tasks }
    })
  }

  /**
   * Removes a graph that was set aside, with all that is kept of it. False if there is no such graph. One whose row is
   * locked is perhaps being repaired, so no statement waits for it: it would be removed long after the request.
   */
  async removeUnreadable(graphId: string, tenant?: string): Promise<boolean> {
    return await this.#database.soon((sql) =>
      sql.begin(async (transaction) => {
        await transaction.unsafe(`select ${this.#database.settings}`)
        const schema = transaction(SCHEMA)
        const [removed] = await transaction`
          delete from ${schema}.graph where ordinal in (
            select ordinal from ${schema}.graph where graph_id = ${graphId} and owner = ${SET_ASIDE} ${isOf(transaction, tenant)} for update nowait)
          returning ordinal`
        if (removed === undefined) return false
        for (const table of ['task_id', 'frame', 'result'])
          await transaction`delete from ${transaction(`${SCHEMA}.${table}`)} where graph = ${removed.ordinal}`
        return true
      }),
    )
  }

  /** The graphs that this replica owns. */
  async owned(): Promise<AdoptedRow[]> {
    const rows: { ordinal: string; size: number }[] = await this.#database.repeat(
      (sql) => sql`
        select ordinal, pg_column_size(payload) as size from ${sql(SCHEMA)}.graph
        where owner = ${this.#me.id} order by ordinal`,
    )
    return rows.map(({ ordinal, size }) => ({ ordinal: Number(ordinal), size }))
  }

  /** What is kept of these graphs, in the order of their numbers. */
  async kept(numbers: readonly number[]): Promise<KeptGraph[]> {
    return await this.#database.repeat(async (sql) => {
      const schema = sql(SCHEMA)
      const ordinals = sql.array([...numbers], 'BIGINT')
      type GraphRow = { ordinal: string; graph_id: string; payload: string }
      type FrameRow = { graph: string; number: string; payload: string; ended_at: string | null; seq: string }
      const [graphs, frames, ids]: [GraphRow[], FrameRow[], IdRow[]] = await Promise.all([
        sql`select ordinal, graph_id, payload from ${schema}.graph where ordinal = any(${ordinals}) order by ordinal`,
        sql`select graph, number, payload, ended_at, seq from ${schema}.frame where graph = any(${ordinals}) order by graph, number`,
        sql`select graph, id from ${schema}.task_id where graph = any(${ordinals})`,
      ])
      const framesOf = Map.groupBy(frames, ({ graph }) => graph)
      const ownIds = await runCooperatively(idsByGraph(ids))
      return graphs.map(({ ordinal, graph_id: graphId, payload }) => {
        const own = framesOf.get(ordinal) ?? []
        return {
          ...{ ordinal: Number(ordinal), graphId },
          graph: payload,
          frames: own.map((frame) => frame.payload),
          lastFrame: Number(own.at(-1)?.number ?? 0),
          blocks: [...new Set(own.map(({ seq }) => blockOf(Number(seq))))],
          hasEnded: own.some(({ ended_at }) => ended_at !== null),
          ownIds: ownIds.get(ordinal) ?? new Set(),
        }
      })
    })
  }

  /** Where a graph is, by its id or by that of one of its tasks. Undefined if there is none, or `tenant` has none. */
  async find(named: NamedGraph, tenant?: string): Promise<FoundById | undefined> {
    const [row] = await this.#database.soon((sql) => {
      const schema = sql(SCHEMA)
      const ordinal =
        'graphId' in named
          ? sql`g.graph_id = ${named.graphId}`
          : sql`g.ordinal = (select t.graph from ${schema}.task_id t where t.id = ${named.taskId})`
      return sql`
        select g.ordinal, g.owner, g.graph_id, g.unreadable, r.address from ${schema}.graph g
        left join ${schema}.replica r on r.id = g.owner and r.state = 'live'
        where ${ordinal} ${isOf(sql, tenant)}`
    })
    return row === undefined ? undefined : foundIn(row)
  }

  /** The ids among these that a graph has, and where that graph is. */
  async holders(taskIds: readonly string[]): Promise<(FoundById & { readonly taskId: string })[]> {
    const rows: (FoundRow & { id: string })[] = await this.#database.soon((sql) => {
      const schema = sql(SCHEMA)
      return sql`
        select t.id, g.ordinal, g.owner, g.graph_id, g.unreadable, r.address from ${schema}.task_id t
        join ${schema}.graph g on g.ordinal = t.graph
        left join ${schema}.replica r on r.id = g.owner and r.state = 'live'
        where t.id = any(${sql.array([...taskIds], 'TEXT')})`
    })
    return rows.map((row) => ({ taskId: row.id, ...foundIn(row) }))
  }

  /** Frees those of these ids of tasks whose graph has no row any more: somebody has deleted the row. */
  async freeStray(taskIds: readonly string[]): Promise<void> {
    await this.#database.soon((sql) => {
      const schema = sql(SCHEMA)
      return sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)})
        delete from ${schema}.task_id t using settings where t.id = any(${sql.array([...taskIds], 'TEXT')})
          and not exists (select from ${schema}.graph g where g.ordinal = t.graph)`
    })
  }
}

/** Whether the graph is one of `tenant`. Whoever has no tenant finds all. */
const isOf = (sql: SQL, tenant: string | undefined) => (tenant === undefined ? sql`` : sql`and tenant = ${tenant}`)

interface FoundRow {
  readonly ordinal: string
  readonly owner: string
  readonly graph_id: string
  readonly unreadable: string | null
  readonly address: string | null
}

function foundIn({ ordinal, owner, graph_id: graphId, unreadable, address }: FoundRow): FoundById {
  const isSetAside = Number(owner) === SET_ASIDE
  return {
    ...{ ordinal: Number(ordinal), owner: Number(owner), address: address ?? undefined, graphId },
    unreadable: isSetAside ? (unreadable ?? '') : undefined,
  }
}

interface IdRow {
  /** The number of the graph. */
  readonly graph: string
  /** The id of a task. */
  readonly id: string
}

function* idsByGraph(rows: readonly IdRow[]): Steps<ReadonlyMap<string, ReadonlySet<string>>> {
  const byGraph = new Map<string, Set<string>>()
  yield* inRanges(rows.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const { graph, id } = rows[i]!
      const ids = byGraph.get(graph)
      if (ids === undefined) byGraph.set(graph, new Set([id]))
      else ids.add(id)
    }
  })
  return byGraph
}

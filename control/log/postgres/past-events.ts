/**
 * Past events, from the rows of the database: those of earlier replicas, of which this one has no history of its own.
 *
 * Frames hold the numbers of the changes in them, so that events can be made from them as a start without a database makes
 * those that its history lacks. The events of a removed graph are gone with its frames, but for its removal.
 *
 * Frames that were encoded together have the same number, and all changes of later ones have higher numbers. So frames
 * are read in windows of numbers, and the events of one window come before those of the next. Windows of several readers
 * are read one after the other: turns share the connections.
 */
import type { SQL } from 'bun'
import type { ServiceEvent } from '../../../shared/contract/events.ts'
import type { Graph } from '../../task/graph.ts'
import type { EventRange } from '../event-reader.ts'
import { type EventRow, eventsOf, isOfGraph, rangeOf } from '../event-rows.ts'
import { LostEvents } from '../lost-events.ts'
import { BLOCK, FIRST_SMALL, LARGE_BLOCKS, SMALL_BLOCK } from '../number-blocks.ts'
import type { Database } from './database.ts'
import { frameOf } from './frame-payloads.ts'
import { SCHEMA } from './schema-name.ts'

/** Numbers of changes in a window. */
const WINDOW = 2_000

interface FrameRow {
  /** The number of its graph. */
  readonly graph: string
  readonly payload: string
}

interface RemovalRow {
  readonly seq: string
  readonly graph_id: string
  readonly tenant: string | null
  readonly at: string
}

export class PastEvents {
  readonly #database: Pick<Database, 'once' | 'repeat' | 'settings'>
  readonly #graphs: () => Iterable<Graph>
  #reading: Promise<unknown> = Promise.resolve()

  /** `graphs` gives those that this replica has. Events of others are left out. */
  constructor(database: Pick<Database, 'once' | 'repeat' | 'settings'>, graphs: () => Iterable<Graph>) {
    this.#database = database
    this.#graphs = graphs
  }

  /** A number after which there are at least `maxEvents` events, or all. */
  async oldest(maxEvents: number): Promise<number> {
    const [row] = await this.#query(
      (sql) => sql`
        select max(seq) as seq from (
          select seq, sum(changes) over (order by seq desc) - changes as later from (
            select seq, sum(changes) as changes from ${sql(SCHEMA)}.frame where seq > 0 group by seq
            union all select seq, 1 from ${sql(SCHEMA)}.removal) one) many
        where later >= ${maxEvents}`,
    )
    return Number(row?.seq ?? 0)
  }

  /**
   * Removes what is not among the newest `maxEvents`. Other events go with their graphs. The next sweep makes up for one
   * that fails.
   */
  async sweep(maxEvents: number): Promise<void> {
    await this.#database.once(
      (sql) => sql`
        with settings as materialized (select ${sql.unsafe(this.#database.settings)})
        delete from ${sql(SCHEMA)}.removal using settings where seq <= (
          select seq from ${sql(SCHEMA)}.removal order by seq desc offset ${maxEvents} limit 1)`,
    )
  }

  /** Yields the events of `range` in parts. */
  async *read(range: EventRange): AsyncGenerator<readonly ServiceEvent[]> {
    const { graphId } = range
    if (graphId !== undefined) {
      const events = this.#eventsOf(this.#newLost(graphId), range, ...(await this.#ofGraph(graphId, range)))
      for (let i = 0; i < events.length; i += WINDOW) yield events.slice(i, i + WINDOW)
      return
    }
    const lost = this.#newLost()
    for (const { first, last } of await this.#ranges(range)) {
      for (let after = Math.max(range.after, first - 1); after < last; after += WINDOW) {
        const upTo = Math.min(after + WINDOW, last)
        const events = this.#eventsOf(lost, range, ...(await this.#between(after, upTo)))
        if (events.length > 0) yield events
      }
    }
  }

  #newLost(graphId?: string): LostEvents {
    const graphs = [...this.#graphs()]
    return new LostEvents(graphId === undefined ? graphs : graphs.filter(({ id }) => id === graphId))
  }

  #eventsOf(
    lost: LostEvents,
    { after, upTo, graphId, isWanted = () => true }: EventRange,
    frames: readonly FrameRow[],
    removals: readonly RemovalRow[],
  ): ServiceEvent[] {
    // Frames of other graphs have no events here, and may be unreadable.
    const own = frames.flatMap(({ graph, payload }) => (lost.has(Number(graph)) ? frameOf(payload) : []))
    const told = own.filter(({ kind }) => kind !== 'x')
    const rows: EventRow[] = [
      ...lost.rowsAfter(after, told),
      ...removals.map(({ seq, graph_id, tenant, at }): EventRow => {
        return ['removed', graph_id, Number(seq), Number(at), tenant === null ? {} : { tenant }]
      }),
    ]
    const isInRange = (row: EventRow) => {
      const { first } = rangeOf([row])
      return first > after && first <= upTo
    }
    const isOfRange = (row: EventRow) => (graphId === undefined || isOfGraph(row, graphId)) && isWanted(row)
    return eventsOf(rows.filter((row) => isInRange(row) && isOfRange(row)))
  }

  async #ofGraph(
    graphId: string,
    { after, upTo }: EventRange,
  ): Promise<[frames: readonly FrameRow[], removals: readonly RemovalRow[]]> {
    const frames = await this.#query<FrameRow>(
      (sql) => sql`
        select f.graph, f.payload from ${sql(SCHEMA)}.frame f join ${sql(SCHEMA)}.graph g on g.ordinal = f.graph
        where g.graph_id = ${graphId} and f.seq > ${after}`,
    )
    const removals = await this.#query<RemovalRow>(
      (sql) => sql`
        select seq, graph_id, tenant, at from ${sql(SCHEMA)}.removal
        where graph_id = ${graphId} and seq > ${after} and seq <= ${upTo}`,
    )
    return [frames, removals]
  }

  async #between(after: number, upTo: number): Promise<[frames: readonly FrameRow[], removals: readonly RemovalRow[]]> {
    const frames = await this.#query<FrameRow>(
      (sql) => sql`select graph, payload from ${sql(SCHEMA)}.frame where seq > ${after} and seq <= ${upTo}`,
    )
    const removals = await this.#query<RemovalRow>(
      (sql) =>
        sql`select seq, graph_id, tenant, at from ${sql(SCHEMA)}.removal where seq > ${after} and seq <= ${upTo}`,
    )
    return [frames, removals]
  }

  /** The lowest and the highest number of each replica: between them, nothing needs to be read. */
  async #ranges({ after, upTo }: EventRange): Promise<readonly { readonly first: number; readonly last: number }[]> {
    const rows = await this.#query<{ first: string; last: string }>(
      (sql) => sql`
        select min(seq) as first, max(seq) as last from (
          select seq from ${sql(SCHEMA)}.frame where seq > ${after} and seq <= ${upTo}
          union all select seq from ${sql(SCHEMA)}.removal where seq > ${after} and seq <= ${upTo}) numbered
        group by case when seq < ${FIRST_SMALL} then seq / ${BLOCK} else ${LARGE_BLOCKS} + (seq - ${FIRST_SMALL}) / ${SMALL_BLOCK} end
        order by 1`,
    )
    return rows.map(({ first, last }) => ({ first: Number(first), last: Number(last) }))
  }

  async #query<Row = Record<string, unknown>>(work: (sql: SQL) => Promise<Row[]>): Promise<Row[]> {
    const reading = this.#reading.then(() => this.#database.repeat(work))
    this.#reading = reading.catch(() => {})
    return await reading
  }
}

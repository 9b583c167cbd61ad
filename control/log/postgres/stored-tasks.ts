/**
 * The tasks that all replicas store, which share `--max-stored-tasks`.
 *
 * The row of each replica has its numbers, written with each turn, so that nobody counts rows. Those of a replica that is
 * gone do not count before its graphs are adopted. The frame with which a graph ended has the time and the tasks: the
 * graphs of all replicas are found in the order of their ends.
 */
import type { LastToGo, SharedRoom } from '../../store/retention.ts'
import { SET_ASIDE } from './adoption-rows.ts'
import type { Database } from './database.ts'
import { SCHEMA } from './schema-name.ts'

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
   * Numbers and graphs are those of one moment: whoever asks later, when others have removed some, gets no later graph.
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

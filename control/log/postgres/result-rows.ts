/** What a turn changes about large results. */
import { SCHEMA } from './schema-name.ts'
import type { AddParameter } from './turn-parameters.ts'
import type { TurnWrites } from './turn-writes.ts'

/** The number of no graph. */
const NO_GRAPH = 0

/**
 * Part of the statement of a turn, after its `fence`. A result goes with the last task that refers to it. One that no
 * state ever referred to goes with its graph. One that was shared belongs to no graph any more.
 */
export function resultChanges(
  { removed, resultUses }: Pick<TurnWrites, 'removed' | 'resultUses'>,
  add: AddParameter,
): string {
  if (removed.length + resultUses.length === 0) return ''
  const results = `${SCHEMA}.result`
  const uses = `json_to_recordset(${add(resultUses.map(([name, change]) => ({ name, change })))}::json) x (name text, change int)`
  return `,
    rs as (update ${results} o set sharers = o.sharers + x.change, graph = ${NO_GRAPH}
      from fence, ${uses} where o.name = x.name and o.sharers + x.change >= 0),
    ru as (delete from ${results} o using fence, ${uses} where o.name = x.name and o.sharers + x.change < 0),
    rg as (delete from ${results} o using fence, unnest(${add(`{${removed.join()}}`)}::bigint[]) g (graph)
      where o.graph = g.graph and not exists (select from ${uses} where x.name = o.name))`
}

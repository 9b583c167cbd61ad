/**
 * Goal: decisions about a group are those about all of its graphs, though most of those that wait are not read. Method: rows of
 * a real database, beside the rule for all of them.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readDecisions, settlePlaces } from '../../../../control/log/postgres/place-rows.ts'
import { changedIn, isQueued, type Place, settled } from '../../../../control/log/postgres/place-rule.ts'
import type { SharedRows } from '../../../../control/log/postgres/shared-rows.ts'
import { ON_FULL } from '../../../../shared/contract/graph-groups.ts'
import { mustPostgres } from '../../../support/must-postgres.ts'
import { type Postgres, startPostgres } from '../../../support/postgres.ts'
import { openRows } from '../../../support/shared-rows.ts'

const missing = mustPostgres()

describe.skipIf(missing !== undefined)(`places in rows${missing === undefined ? '' : ` (skipped: ${missing})`}`, () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await startPostgres()
  })
  afterAll(() => postgres[Symbol.asyncDispose]())

  /** Rows for `places`, in their order. */
  async function keep({ database }: SharedRows, group: string, places: readonly Place[]): Promise<void> {
    for (const { graph, graphId, limit, onFull, isHeld, isNew, cancelledBy = null } of places) {
      await database.once(
        (sql) => sql`
            with g as (
              insert into taskmill.graph (ordinal, graph_id, payload, owner) values (${graph}, ${graphId}, '', 1))
            insert into taskmill.place (graph, group_name, graph_limit, on_full, is_held, is_new, cancelled_by)
            values (${graph}, ${group}, ${limit}, ${onFull}, ${isHeld}, ${isNew}, ${cancelledBy})`,
      )
    }
  }

  const placeAt = (graph: number, more: Partial<Place> = {}): Place => ({
    ...{ graph, graphId: `g${graph}`, limit: 2, onFull: 'wait', isHeld: false, isNew: false, cancelledBy: undefined },
    ...more,
  })
  const waiting = (from: number, count: number) => Array.from({ length: count }, (_, i) => placeAt(from + i))
  const graphsOf = (places: readonly Place[] | undefined) => places?.map(({ graph }) => graph)

  test('a decision reads what matters, and the first of those that wait', async () => {
    await using rows = await openRows([postgres.url(await postgres.createDatabase())])
    const heldAndLast = [placeAt(1, { isHeld: true }), ...waiting(2, 60), placeAt(90, { isNew: true })]
    const refused = placeAt(91, { onFull: 'refuse' })
    const cancelled = placeAt(92, { cancelledBy: 'g1' })
    const all = [...heldAndLast, refused, cancelled]
    await keep(rows, 'many', all)
    await keep(rows, 'other', [placeAt(99, { isNew: true })])
    const { places, next } = await rows.database.once((sql) => readDecisions(sql, ['many', 'none', 'other']))
    expect(graphsOf(places.get('many'))).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 90, 91, 92])
    expect([...next.keys()]).toEqual(['many', 'none', 'other'])
    expect(next.get('none')).toEqual([])
    expect(changedIn(places.get('many')!, next.get('many')!)).toEqual(changedIn(all, settled(all)))
    expect(next.get('other')).toEqual([placeAt(99, { isHeld: true })])
  })

  test('it reads more while all that were read get a place, or are cancelled', async () => {
    await using rows = await openRows([postgres.url(await postgres.createDatabase())])
    const wide = waiting(1, 100).map((place) => ({ ...place, limit: 70 }))
    const cancelling = [...waiting(201, 100), placeAt(301, { onFull: 'cancel_oldest', isNew: true, limit: 3 })]
    await keep(rows, 'wide', wide)
    await keep(rows, 'cancelling', cancelling)
    const { settings } = rows.database
    const options = { settings, isHere: () => true }
    await rows.database.once((sql) => settlePlaces(sql, ['wide', 'cancelling'], options))
    const kept = await rows.database.once(
      (sql) => sql`select graph, is_held, cancelled_by from taskmill.place order by graph`,
    )
    const expected = [...settled(wide), ...settled(cancelling)].map(({ graph, isHeld, cancelledBy = null }) => ({
      ...{ graph: String(graph), is_held: isHeld, cancelled_by: cancelledBy },
    }))
    expect([...kept]).toEqual(expected)
    expect(expected.filter(({ is_held }) => is_held)).toHaveLength(72)
    expect(expected.filter(({ cancelled_by }) => cancelled_by !== null)).toHaveLength(98)
  })

  test('the graphs that matter are told from those that only wait as the rule tells them', async () => {
    await using rows = await openRows([postgres.url(await postgres.createDatabase())])
    const all: Place[] = []
    for (const onFull of ON_FULL)
      for (const isHeld of [false, true])
        for (const isNew of [false, true])
          for (const cancelledBy of [undefined, 'g1'])
            all.push(placeAt(all.length + 1, { onFull, isHeld, isNew, cancelledBy }))
    await keep(rows, 'all', all)
    const kept = await rows.database.once((sql) => sql`select is_queued from taskmill.place order by graph`)
    expect([...kept].map(({ is_queued }) => is_queued)).toEqual(all.map(isQueued))
  })
})

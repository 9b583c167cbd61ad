/** Lists joined from pages of several replicas. Goal: each entry once and in order, however the pages are cut. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Keeper } from '../../../control/log/keeper.ts'
import { joinedItems, linesOf, pageIn } from '../../../control/operations/joined-pages.ts'
import { ServiceError } from '../../../shared/contract/errors.ts'
import { operationParts } from '../../support/operation-parts.ts'

const order = {
  compare: (a: number, b: number) => a - b,
  cursor: String,
  placeOf: (text: string) => (/^\d+$/.test(text) ? Number(text) : undefined),
}

/** A page of a replica that has `entries`. */
const pageOf = (entries: readonly number[], after: number | undefined, size: number) => {
  const items = entries.filter((entry) => entry > (after ?? -1)).slice(0, size)
  return { items: items.map((place) => ({ place, value: `v${place}` })), hasMore: items.length === size }
}

/** The replica 1, with what it lists, and others, of which the numbers in `away` do not answer. */
function parts(others: readonly (readonly number[])[], away: readonly number[] = []) {
  const live = others.map((_, i) => ({ id: i + 2, address: 'http://other', leaseMs: 1_000 }))
  const ask: Keeper['others']['ask'] = async ({ id }, { path }) => {
    if (away.includes(id)) throw new ServiceError(503, 'no answer')
    const query = new URL(path, 'http://other').searchParams
    const cursor = query.get('cursor')
    const page = pageOf(others[id - 2]!, cursor === null ? undefined : Number(cursor), Number(query.get('limit')))
    return new Response(`counts 7\n${linesOf(order, page, (value) => value)}`)
  }
  const keeper = { replica: { id: 1 }, others: { all: async () => ({ live, gone: [] }), ask } }
  return operationParts({ keeper, eventStreams: { position: 5 } })
}

const listOf = (own: readonly number[], size: number, after?: number) => ({
  ...{ order, path: '/list', query: new URLSearchParams(), after, size },
  own: async (from: number | undefined) => pageOf(own, from, size),
  read: (text: string) => text,
})

test('a list has the entries of all replicas once, in order, and pages of it continue at the cursor', async () => {
  const entries = fc.uniqueArray(fc.nat({ max: 40 })).map((all) => all.sort(order.compare))
  const replicas = fc.tuple(entries, fc.array(entries, { maxLength: 3 })) // a graph that changes hands is in two lists
  await fc.assert(
    fc.asyncProperty(
      replicas,
      fc.integer({ min: 1, max: 5 }),
      fc.integer({ min: 1, max: 5 }),
      async ([own, others], size, limit) => {
        const wanted = [...new Set([own, ...others].flat())].sort(order.compare)
        const listed: string[] = []
        for (let after: number | undefined, isLast = false; !isLast; ) {
          const { items } = await joinedItems(parts(others), listOf(own, size, after), '')
          const { values, nextCursor } = await pageIn(items, order, limit)
          expect(values.length === limit || nextCursor === undefined).toBe(true)
          listed.push(...values)
          isLast = nextCursor === undefined
          after = Number(nextCursor)
        }
        expect(listed).toEqual(wanted.map((entry) => `v${entry}`))
      },
    ),
  )
})

test('a replica that does not answer is named, also in the position; one that fails later breaks the list', async () => {
  const away: number[] = [3]
  const counts: string[] = []
  const onOther = (json: string) => void counts.push(json)
  const { items, missing, position } = await joinedItems(
    parts([[1, 2, 3], [4]], away),
    { ...listOf([5], 2), onOther },
    '',
  )
  expect({ missing, position, counts }).toEqual({ missing: [3], position: '5-3-2', counts: ['7'] })
  expect((await items.next()).value).toEqual({ place: 1, value: 'v1' })
  away.push(2)
  await items.next()
  await expect(items.next()).rejects.toThrow('no answer')
})

/** Goal: no replica is overlooked that ends while the others are looked up. Method: rows in memory that change in between. */
import { expect, test } from 'bun:test'
import { Unreadable } from '../../../../control/log/keeper.ts'
import { DatabaseFault } from '../../../../control/log/postgres/database-fault.ts'
import { Others, type OthersOptions } from '../../../../control/log/postgres/others.ts'
import { nextTurn } from '../../../../shared/process/steps.ts'

test('a replica that gives its graphs back just now lives, or is gone', async () => {
  for (const query of ['live', 'gone']) {
    let hasReleased = false
    /** The query is slow, and the replica releases its graphs before it is executed. */
    const executed = async (name: string) => {
      if (name !== query) return
      await nextTurn()
      hasReleased = true
    }
    const rows = {
      replicas: {
        async live() {
          await executed('live')
          return hasReleased ? [] : [{ id: 7, address: 'http://7', leaseMs: 1 }]
        },
      },
      adoptions: {
        async ownersGone() {
          await executed('gone')
          return hasReleased ? [7] : []
        },
      },
    }
    const takeover = { adopting: [] }
    const others = new Others({ rows, takeover, store: {}, token: undefined } as unknown as OthersOptions)
    const { live, gone } = await others.all()
    expect([...live.map(({ id }) => id), ...gone]).toContain(7)
  }
})

test('a graph that is set aside because somebody asks for it is unreadable at once', async () => {
  let isSetAside = false
  const rows = {
    replicas: { id: 8 },
    adoptions: {
      find: async () =>
        isSetAside
          ? { graphId: 'g', ordinal: 1, owner: -1, address: undefined, unreadable: 'damaged' }
          : { graphId: 'g', ordinal: 1, owner: 7, address: undefined, unreadable: undefined },
    },
  }
  const takeover = {
    async adoptOne() {
      isSetAside = true
      return true
    },
  }
  const store = { graph: () => undefined }
  const others = new Others({ rows, takeover, store, token: undefined } as unknown as OthersOptions)
  await expect(others.ownerOf({ graphId: 'g' })).rejects.toThrow(Unreadable)
})

test('while the database is away, nobody who asks for an orphaned graph or its ids gets another error than 503', async () => {
  const found = { graphId: 'g', ordinal: 1, owner: 7, address: undefined, unreadable: undefined, taskId: 'a' }
  const rows = { replicas: { id: 8 }, adoptions: { find: async () => found, holders: async () => [found] } }
  const takeover = { adoptOne: () => Promise.reject(new DatabaseFault('away', 'the connection was cut', undefined)) }
  const store = { graph: () => undefined }
  const others = new Others({ rows, takeover, store, token: undefined } as unknown as OthersOptions)
  const away = expect.objectContaining({ status: 503 })
  await expect(others.ownerOf({ graphId: 'g' })).rejects.toEqual(away)
  await expect(others.whereabouts({ graphId: 'g' })).rejects.toEqual(away)
  await expect(others.free(['a'])).rejects.toEqual(away)
})

/**
 * Goal: what was adopted is built, whatever fails meanwhile. Method: rows in memory, which this replica gets in portions, and
 * faults of the database at each step.
 */
import { expect, test } from 'bun:test'
import { Adoption } from '../../../../control/log/postgres/adoption.ts'
import type { AdoptionRows, KeptGraph } from '../../../../control/log/postgres/adoption-rows.ts'
import { DatabaseFault } from '../../../../control/log/postgres/database-fault.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { until } from '../../../support/until.ts'

const GRAPHS = [11, 12, 13]

/** Fails at the first call of `step`, for graph 12 if it is about one. */
function adoptionThatFailsAt(step: string) {
  const owned: number[] = []
  const built: number[] = []
  const told: number[][] = []
  let hasFailed = false
  const fail = (at: string) => {
    if (at !== step || hasFailed) return
    hasFailed = true
    throw new Error(`fault at ${at}`)
  }
  const asRow = (ordinal: number) => ({ ordinal, size: 100 * 1024 }) // each is read by itself
  const rows: Partial<AdoptionRows> = {
    ownersGone: async () => (owned.length === 0 ? [7] : []),
    adopt: async ({ isLive }) => {
      if (!isLive || owned.length > 0) return []
      owned.push(...GRAPHS)
      fail('adopt')
      return GRAPHS.map(asRow)
    },
    kept: async ([ordinal]) => {
      if (ordinal === 12) fail('read')
      return [{ ordinal } as KeptGraph]
    },
    owned: async () => owned.map(asRow),
  }
  const adoption = new Adoption({
    replicas: { buryLate: async () => [], leaseMs: 1_000 },
    rows: rows as AdoptionRows,
    steadyMs: () => 0,
    build: async ({ ordinal }) => {
      if (ordinal === 12) fail('build')
      built.push(ordinal)
      return true
    },
    onBuilt: async () => {
      fail('tell')
      told.push([...built])
    },
    settle: async () => {},
    isOwnNumber: () => false,
    log: silentLog(),
  })
  return { adoption, built, told }
}

test.each(['adopt', 'read', 'build', 'tell'])('the next look makes up for a fault at: %s', async (step) => {
  const { adoption, built, told } = adoptionThatFailsAt(step)
  expect(await adoption.look().catch(String)).toBe(`Error: fault at ${step}`)
  await adoption.look()
  expect(built.toSorted()).toEqual(GRAPHS)
  expect(told.at(-1)).toEqual(built)
  expect(adoption.adoptedTotal).toBe(GRAPHS.length)
})

test('a removed graph is forgotten once its rows are gone, and not before', async () => {
  const owned = [12]
  const built: number[] = []
  let settled: () => Promise<void> = async () => {}
  const adoption = new Adoption({
    replicas: { buryLate: async () => [], leaseMs: 1_000 },
    rows: {
      ownersGone: async () => [],
      adoptOne: async ({ ordinal }) => {
        if (ordinal !== 12) throw new Error('the answer got lost')
        return [{ ordinal, size: 1 }]
      },
      kept: async (ordinals) => ordinals.map((ordinal) => ({ ordinal }) as KeptGraph),
      owned: async () => owned.map((ordinal) => ({ ordinal, size: 1 })),
    } as Partial<AdoptionRows> as AdoptionRows,
    steadyMs: () => 0,
    build: async ({ ordinal }) => built.push(ordinal) > 0,
    onBuilt: async () => {},
    settle: () => settled(),
    isOwnNumber: () => false,
    log: silentLog(),
  })
  const found = (ordinal: number) => ({ ordinal, owner: 7, address: undefined })
  /** What a lost answer makes the replica build: all that it owns and does not know. */
  const missed = async () => {
    built.length = 0
    await adoption.adoptOne(found(13)).catch(() => {})
    await adoption.look()
    return built
  }
  await adoption.adoptOne(found(12))
  expect(await missed()).toEqual([])
  adoption.removed(12)
  expect(await missed()).toEqual([])
  settled = async () => {
    owned.length = 0
  }
  expect(await missed()).toEqual([])
  owned.push(12) // cannot be: it shows that nothing is known of it
  settled = async () => {}
  expect(await missed()).toEqual([12])
})

test('a fault that does not pass is told once', async () => {
  const { log, lines } = memoryLog('debug')
  let looks = 0
  const adoption = new Adoption({
    replicas: { buryLate: async () => [], leaseMs: 100 },
    rows: {
      ownersGone: async () => {
        if (++looks === 2) throw new DatabaseFault('away', 'no connection', undefined)
        throw new Error('no such column')
      },
    } as Partial<AdoptionRows> as AdoptionRows,
    steadyMs: () => 0,
    build: async () => true,
    onBuilt: async () => {},
    settle: async () => {},
    isOwnNumber: () => false,
    log,
  })
  adoption.start()
  await until(
    () => looks,
    (count) => count > 3,
  )
  adoption.stop()
  expect(lines()).toMatchObject([
    {
      level: 'error',
      msg: 'graphs of other replicas are not adopted',
      cause: expect.stringContaining('no such column'),
    },
    { level: 'debug', msg: 'cannot look for graphs to adopt', cause: 'no connection' },
  ])
})

/**
 * Goal: what is reserved is the exact sum of what runs, capacity and quotas hold, nothing is ever available below nothing.
 * Method: tables for the texts and views; random schedules of reservations, releases and restarts with another capacity,
 * beside a list of what runs.
 */
import { describe, expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import { RESOURCES, reservationFor } from '../../../runtime/ledger/amounts.ts'
import { type Asking, Ledger, type LiveReservation } from '../../../runtime/ledger/ledger.ts'
import { ResourcesSnapshot } from '../../../shared/contract/runtime-info.ts'
import { randomAsking, randomCapacity, randomQuotas } from '../../support/ledger.ts'
import { refusalOf } from '../../support/runtime-requests.ts'

const AT = '2026-01-02T03:04:05.678Z'
const live = (task_id: string, asking: Asking): LiveReservation => ({ task_id, reserved_at: AT, ...asking })
const of = (memory_bytes?: number, pids?: number, tenant?: string): Asking => ({
  tenant,
  reservation: { task_slots: 1, ...(memory_bytes && { memory_bytes }), ...(pids && { pids }) },
})
const snapshot = (ledger: Ledger) => ledger.snapshot('r', 3, () => 'running')

test('a task takes a slot, and what it may use at most', () => {
  expect(reservationFor({ memory_bytes: 5, pids_max: 6, wall_time_ms: 7 })).toEqual({
    task_slots: 1,
    memory_bytes: 5,
    pids: 6,
  })
  expect(reservationFor({})).toEqual({ task_slots: 1 })
})

describe('a task that asks for more than there is', () => {
  const ledger = new Ledger(
    { task_slots: 2, memory_bytes: 100, pids: 10 },
    new Map([['a', { task_slots: 1, memory_bytes: 50 }]]),
  )

  test.each<[Asking, string, object]>([
    [
      of(101),
      'limits.memory_bytes=101 exceeds the runtime capacity, which is 100 (ask for less, or have --capacity-memory-bytes raised)',
      { resource: 'memory_bytes', requested: 101, capacity: 100 },
    ],
    [
      of(1, 11, 'a'),
      'limits.pids_max=11 exceeds the runtime capacity, which is 10 (ask for less, or have --capacity-pids raised)',
      { resource: 'pids', requested: 11, capacity: 10 },
    ],
    [
      of(51, undefined, 'a'),
      'limits.memory_bytes=51 exceeds the quota of tenant "a", which is 50 (ask for less, or have --tenant-quota raised)',
      { resource: 'memory_bytes', requested: 51, capacity: 50, tenant: 'a' },
    ],
    [
      of(Number.MAX_SAFE_INTEGER),
      'limits.memory_bytes (9007199254740991 or more) exceeds the runtime capacity, which is 100 (ask for less, or have --capacity-memory-bytes raised)',
      { resource: 'memory_bytes', requested: Number.MAX_SAFE_INTEGER, capacity: 100, is_at_least: true },
    ],
    [
      { reservation: { task_slots: 3 } },
      'task_slots=3 exceeds the runtime capacity, which is 2 (ask for less, or have --max-running-tasks raised)',
      { resource: 'task_slots', requested: 3, capacity: 2 },
    ],
  ])('%j is refused: %s', (asking, message, details) => {
    const refusal = refusalOf(() => ledger.ensureCanEverFit(asking))
    expect({ ...refusal, message: refusal.message }).toMatchObject({
      code: 'insufficient_resources',
      status: 400,
      message,
      details,
    })
  })

  test.each([of(100, 10), of(50, 10, 'a'), of(100, 10, 'b'), of()])('%j is not', (asking) => {
    expect(() => ledger.ensureCanEverFit(asking)).not.toThrow()
  })

  test('of what is not known to be limited is not, up to what can be counted', () => {
    const unlimited = new Ledger({ task_slots: 2 })
    const most = of(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER)
    unlimited.ensureCanEverFit(most)
    unlimited.reserve(live('1', most))
    expect(unlimited.holdOn(of(1))).toBe('capacity')
    expect(unlimited.holdOn(of())).toBeNull()
    expect(() => unlimited.restore(live('2', of(1)))).toThrow(RangeError)
    unlimited.release('1')
    expect(unlimited.reserved).toEqual({ task_slots: 0, memory_bytes: 0, pids: 0 })
  })
})

test('what holds a task up is its tenant’s quota before the capacity', () => {
  const ledger = new Ledger({ task_slots: 2, memory_bytes: 10 }, new Map([['a', { task_slots: 1 }]]))
  expect(ledger.holdOn(of(5, undefined, 'a'))).toBeNull()
  ledger.reserve(live('1', of(5, undefined, 'a')))
  expect(ledger.holdOn(of(1, undefined, 'a'))).toBe('quota')
  expect(ledger.holdOn(of(6, undefined, 'a'))).toBe('quota')
  expect(ledger.holdOn(of(6, undefined, 'b'))).toBe('capacity')
  expect(ledger.holdOn(of(5, undefined, 'b'))).toBeNull()
  expect(ledger.hasFreeSlot).toBe(true)
  ledger.reserve(live('2', of()))
  expect(ledger.hasFreeSlot).toBe(false)
  expect(ledger.holdOn(of())).toBe('capacity')
})

test('a mistake of ours does not go into the books', () => {
  const ledger = new Ledger({ task_slots: 1 })
  ledger.reserve(live('1', of()))
  expect(() => ledger.reserve(live('2', of()))).toThrow('task 2 does not fit (capacity)')
  expect(() => ledger.restore(live('1', of()))).toThrow('task 1 has a reservation')
  expect(ledger.release('2')).toBeUndefined()
  expect(ledger.reserved.task_slots).toBe(1)
  expect(ledger.release('1')).toEqual(live('1', of()))
  expect(ledger.release('1')).toBeUndefined()
  expect(ledger.reserved.task_slots).toBe(0)
})

describe('the snapshot', () => {
  test('shows what is there, reserved and left', () => {
    const quotas = new Map([
      ['z', { task_slots: 2, pids: 5 }],
      ['a', { task_slots: 1, memory_bytes: 50 }],
    ])
    const ledger = new Ledger({ task_slots: 4, memory_bytes: 100 }, quotas)
    ledger.reserve(live('1', of(30, 4, 'z')))
    ledger.reserve(live('2', of(20, undefined, 'free')))
    expect(snapshot(ledger)).toEqual({
      runtime_id: 'r',
      capacity: { task_slots: 4, memory_bytes: 100 },
      reserved: { task_slots: 2, memory_bytes: 50, pids: 4 },
      available: { task_slots: 2, memory_bytes: 50 },
      active_reservations: [
        { task_id: '1', status: 'running', reservation: of(30, 4).reservation, reserved_at: AT },
        { task_id: '2', status: 'running', reservation: of(20).reservation, reserved_at: AT },
      ],
      accepted_waiting_tasks: 3,
      tenants: [
        {
          tenant: 'a',
          quota: { task_slots: 1, memory_bytes: 50 },
          reserved: { task_slots: 0, memory_bytes: 0, pids: 0 },
          available: { task_slots: 1, memory_bytes: 50 },
        },
        { tenant: 'free', reserved: { task_slots: 1, memory_bytes: 20, pids: 0 } },
        {
          tenant: 'z',
          quota: { task_slots: 2, pids: 5 },
          reserved: { task_slots: 1, memory_bytes: 30, pids: 4 },
          available: { task_slots: 1, pids: 1 },
        },
      ],
    })
    ledger.release('2')
    expect(snapshot(ledger).tenants.map(({ tenant }) => tenant)).toEqual(['a', 'z'])
  })

  test('after a restart with less shows nothing as available, not less', () => {
    const quotas = new Map([['a', { task_slots: 1, memory_bytes: 10 }]])
    const ledger = new Ledger({ task_slots: 1, memory_bytes: 40, pids: 3 }, quotas)
    for (const id of ['1', '2']) ledger.restore(live(id, of(30, 2, 'a')))
    expect(snapshot(ledger)).toMatchObject({
      reserved: { task_slots: 2, memory_bytes: 60, pids: 4 },
      available: { task_slots: 0, memory_bytes: 0, pids: 0 },
      tenants: [{ tenant: 'a', available: { task_slots: 0, memory_bytes: 0 } }],
    })
    expect(ledger.hasFreeSlot).toBe(false)
    expect(ledger.holdOn(of())).toBe('capacity')
  })
})

test('a task that asks for no memory does not wait for memory, whatever the books say', () => {
  const ledger = new Ledger({ task_slots: 3, memory_bytes: 10 })
  ledger.restore(live('1', of(30)))
  expect(ledger.holdOn(of(1))).toBe('capacity')
  expect(ledger.holdOn(of())).toBeNull()
})

describe('over any schedule', () => {
  const step = fc.oneof(
    { weight: 6, arbitrary: randomAsking.map((asking) => ({ do: 'reserve' as const, asking })) },
    { weight: 4, arbitrary: fc.nat().map((pick) => ({ do: 'release' as const, pick })) },
    {
      weight: 1,
      arbitrary: fc.tuple(randomCapacity, randomQuotas).map(([capacity, quotas]) => ({
        do: 'restart' as const,
        capacity,
        quotas,
      })),
    },
  )

  test('reserved is the sum of what runs, and nothing is over capacity that was reserved under it', () => {
    fc.assert(
      fc.property(randomCapacity, randomQuotas, fc.array(step, { maxLength: 60 }), (capacity, quotas, steps) => {
        let ledger = new Ledger(capacity, quotas)
        const running: LiveReservation[] = []
        for (const [i, step] of steps.entries()) {
          if (step.do === 'reserve') {
            const { tenant } = step.asking
            const after = sums([...running, live('', step.asking)], tenant)
            const asked = sumOf([live('', step.asking)])
            const fits =
              isWithin(after.all, asked, ledger.capacity) && isWithin(after.own, asked, quotaOf(ledger, step.asking))
            expect(ledger.fitsNow(step.asking)).toBe(fits)
            if (fits) {
              expect(ledger.shortfallOf(step.asking)).toBeNull()
              ledger.reserve(live(String(i), step.asking))
              running.push(live(String(i), step.asking))
            }
          } else if (step.do === 'release' && running.length > 0) {
            const [gone] = running.splice(step.pick % running.length, 1)
            expect(ledger.release(gone!.task_id)).toEqual(gone!)
          } else if (step.do === 'restart') {
            ledger = new Ledger(step.capacity, step.quotas)
            for (const reservation of running) ledger.restore(reservation)
          }
          expectBooks(ledger, running)
        }
      }),
      { numRuns: 500 },
    )
  })
})

type Counters = Readonly<Record<(typeof RESOURCES)[number], number>>

const sumOf = (running: readonly LiveReservation[]): Counters => {
  const total = { task_slots: 0, memory_bytes: 0, pids: 0 }
  for (const { reservation } of running) {
    for (const resource of RESOURCES) total[resource] += reservation[resource] ?? 0
  }
  return total
}

const sums = (running: readonly LiveReservation[], tenant: string | undefined) => ({
  all: sumOf(running),
  own: sumOf(running.filter((reservation) => reservation.tenant === tenant)),
})

/** Of what is asked for there must be enough; what is short already, and not asked for, does not matter. */
const isWithin = (after: Counters, asked: Counters, limits: Partial<Counters> = {}): boolean =>
  RESOURCES.every(
    (resource) => asked[resource] === 0 || after[resource] <= (limits[resource] ?? Number.POSITIVE_INFINITY),
  )

const quotaOf = (ledger: Ledger, { tenant }: Asking) => (tenant === undefined ? undefined : ledger.quotas.get(tenant))

function expectBooks(ledger: Ledger, running: readonly LiveReservation[]): void {
  const shown = snapshot(ledger)
  const { active_reservations: _, ...checkable } = shown // their times have a format, which nobody registers here
  expect(Value.Check(Type.Omit(ResourcesSnapshot, ['active_reservations']), checkable)).toBe(true)
  expect(shown.reserved).toEqual(sumOf(running))
  expect(shown.active_reservations.map(({ task_id }) => task_id)).toEqual(running.map(({ task_id }) => task_id))
  for (const view of [shown, ...shown.tenants]) {
    for (const resource of RESOURCES) expect(view.available?.[resource] ?? 0).toBeGreaterThanOrEqual(0)
  }
  const tenants = new Set([...ledger.quotas.keys(), ...running.flatMap(({ tenant }) => tenant ?? [])])
  expect(shown.tenants.map(({ tenant }) => tenant)).toEqual([...tenants].sort())
  for (const { tenant, quota, reserved, available } of shown.tenants) {
    expect(reserved).toEqual(sums(running, tenant).own)
    expect([quota === undefined, available === undefined]).toEqual(new Array(2).fill(!ledger.quotas.has(tenant)))
  }
}

/** Goal: which runtime services may take a task, and which of two is better. Method: tables, and rules for random ones. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import {
  fittingRuntimes,
  isBetter,
  needOf,
  type Offer,
  type PlacementRule,
  placementFault,
  placementRule,
  sumOf,
  without,
} from '../../../control/rules/placement.ts'
import type { RuntimeLabels } from '../../../shared/contract/runtime-names.ts'

const runtime = (name: string, labels: RuntimeLabels = {}, isDraining = false) => ({ name, labels, isDraining })
const namesOf = (rule: PlacementRule, runtimes: readonly ReturnType<typeof runtime>[]) => {
  const found = fittingRuntimes(runtimes, rule)
  return 'open' in found ? found.open.map(({ name }) => name) : found.waiting
}

describe('the runtime services that fit', () => {
  const a = runtime('a', { zone: 'a' })
  const b = runtime('b', { zone: 'b', gpu: '' })
  const resting = runtime('resting', { zone: 'c', gpu: '' }, true)
  test.each<[PlacementRule, string[] | string]>([
    [{}, ['a', 'b']],
    [{ runtime: 'a' }, ['a']],
    [{ labels: { gpu: '' } }, ['b']],
    [{ labels: { zone: 'b', gpu: '' } }, ['b']],
    [{ labels: { gpu: '', zone: 'a' } }, 'no runtime has labels gpu, zone=a'],
    [{ labels: { zone: '' } }, 'no runtime has labels zone'],
    [{ labels: { toString: '' } }, 'no runtime has labels toString'],
    [{ runtime: 'c' }, 'no runtime is named c'],
    [{ runtime: 'resting' }, 'runtime resting is draining'],
    [{ labels: { zone: 'c' } }, 'runtime resting is draining'],
  ])('%j: %j', (rule, expected) => {
    expect(namesOf(rule, [a, b, resting])).toEqual(expected)
  })

  test('none, or several that all are draining', () => {
    expect(namesOf({}, [])).toBe('there is no runtime')
    const many = ['p', 'q', 'r', 's', 't'].map((name) => runtime(name, {}, true))
    expect(namesOf({}, many.slice(0, 2))).toBe('runtimes p, q are draining')
    expect(namesOf({}, many)).toBe('runtimes p, q, r and 2 others are draining')
  })

  test('have all labels, and are not draining; the others lack one, or are', () => {
    const label = fc.constantFrom('gpu', 'zone', 'arm', 'constructor')
    const labels = fc.dictionary(label, fc.constantFrom('', 'a', 'b'))
    const some = fc.array(fc.tuple(labels, fc.boolean()), { maxLength: 8 })
    fc.assert(
      fc.property(some, labels, (given, asked) => {
        const runtimes = given.map(([each, isDraining], i) => runtime(`r${i}`, each, isDraining))
        const found = namesOf({ labels: asked }, runtimes)
        const expected = runtimes.filter(
          (each) =>
            !each.isDraining &&
            Object.keys(asked).every((key) => Object.hasOwn(each.labels, key) && each.labels[key] === asked[key]),
        )
        if (expected.length > 0) expect(found).toEqual(expected.map(({ name }) => name))
        else expect(typeof found).toBe('string')
      }),
    )
  })
})

test('a placement without a fault has a rule, and nothing throws', () => {
  fc.assert(
    fc.property(fc.anything(), (given) => {
      const fault = placementFault(given)
      if (fault === undefined) expect(Object.keys(placementRule(given)).length).toBeLessThanOrEqual(1)
      else expect(fault).toStartWith('placement')
    }),
  )
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`l${i}`, '']))
  expect(placementFault({ labels: many })).toBe('placement.labels: expected at most 64 labels, got 65')
  expect(placementFault({ labels: JSON.parse('{"__proto__":""}') })).toContain('got "__proto__"')
  expect(placementFault({ runtime: null, labels: null })).toBeUndefined()
})

const offer = (task_slots: number, free: number, more: Partial<Offer> = {}): Offer => ({
  capacity: { task_slots },
  available: { task_slots: free },
  queued: 0,
  ...more,
})

describe('the better one of two', () => {
  const memory = (all: number, free: number, slots = 4): Offer => ({
    capacity: { task_slots: 4, memory_bytes: all },
    available: { task_slots: slots, memory_bytes: free },
    queued: 0,
  })
  test.each<[string, Offer, Offer, object]>([
    ['has more free places', offer(4, 3), offer(4, 1), {}],
    ['has the larger free share', offer(4, 3), offer(40, 10), {}],
    ['has room at all', offer(4, 1), offer(40, 0), {}],
    ['has the shorter queue', offer(4, 0, { queued: 1 }), offer(4, 0, { queued: 5 }), {}],
    ['has no queue', offer(4, 1), offer(4, 4, { queued: 1 }), {}],
    ['has memory for the task', memory(100, 50), memory(100, 20), { memory_bytes: 30 }],
    ['can ever run the task', memory(100, 0), memory(20, 20), { memory_bytes: 30 }],
    ['has the most of what is scarcest', memory(100, 60, 2), memory(100, 10, 4), {}],
  ])('%s', (_, better, worse, limits) => {
    const need = needOf(limits)
    expect([isBetter(better, worse, need), isBetter(worse, better, need)]).toEqual([true, false])
  })

  test('is one of them at most, and never one that can never run the task', () => {
    const amount = fc.integer({ min: 0, max: 100 })
    const any: fc.Arbitrary<Offer> = fc
      .tuple(amount, amount, amount, amount, amount)
      .map(([slots, used, all, taken, queued]) => ({
        capacity: { task_slots: slots, memory_bytes: all },
        available: { task_slots: Math.max(0, slots - used), memory_bytes: Math.max(0, all - taken) },
        queued,
      }))
    fc.assert(
      fc.property(any, any, amount, (a, b, memory_bytes) => {
        const need = needOf({ memory_bytes })
        expect(isBetter(a, b, need) && isBetter(b, a, need)).toBe(false)
        const isImpossible = (at: Offer) => at.capacity.task_slots < 1 || at.capacity.memory_bytes! < memory_bytes
        if (isImpossible(a)) expect(isBetter(a, b, need)).toBe(false)
        if (isImpossible(b) && !isImpossible(a)) expect(isBetter(a, b, need)).toBe(true)
      }),
    )
  })

  test('changes with what was placed since', () => {
    const need = needOf({ memory_bytes: 10, pids_max: 2 })
    expect(need).toEqual({ task_slots: 1, memory_bytes: 10, pids: 2 })
    expect(sumOf(need, need)).toEqual({ task_slots: 2, memory_bytes: 20, pids: 4 })
    expect(without({ task_slots: 4, memory_bytes: 25 }, sumOf(need, need))).toEqual({ task_slots: 2, memory_bytes: 5 })
    expect(needOf({ memory_bytes: 'much', pids_max: -1 })).toEqual({ task_slots: 1 })
    expect(needOf(undefined)).toEqual({ task_slots: 1 })
  })
})

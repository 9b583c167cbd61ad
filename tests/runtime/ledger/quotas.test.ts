/** Goal: a quota means what was written, and a mistake is told. Method: tables; random quotas written and read back. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_QUOTAS, parseTenantQuotas } from '../../../runtime/ledger/quotas.ts'
import type { Capacity } from '../../../shared/contract/runtime-info.ts'
import { Expected } from '../../../shared/settings/flags.ts'

const parsed = (text: string) => {
  const quotas = parseTenantQuotas(text)
  return quotas instanceof Expected ? quotas.what : Object.fromEntries(quotas)
}

test.each<[string, Record<string, Capacity>]>([
  ['a=slots:2', { a: { task_slots: 2 } }],
  ['a=slots:1,memory:1024,pids:10', { a: { task_slots: 1, memory_bytes: 1024, pids: 10 } }],
  ['a=pids:10, slots:3', { a: { task_slots: 3, pids: 10 } }],
  ['a=slots:1,pids:2,b=slots:3', { a: { task_slots: 1, pids: 2 }, b: { task_slots: 3 } }],
  ['team a:x=slots:1', { 'team a:x': { task_slots: 1 } }],
  ['x=y=slots:1', { 'x=y': { task_slots: 1 } }],
])('%j is %j', (text, quotas) => {
  expect(parsed(text)).toEqual(quotas)
})

describe('a mistake', () => {
  test.each([
    ['', 'the name is missing'],
    ['slots:1', 'the name is missing'],
    ['=slots:1', 'the name is missing'],
    [' =slots:1', 'the name is missing'],
    ['a=', '"" is none of slots, memory, pids (tenant "a")'],
    ['a=1', '"1" is none of slots, memory, pids (tenant "a")'],
    ['a=cpu:1', '"cpu" is none of slots, memory, pids (tenant "a")'],
    ['a=toString:1', '"toString" is none of slots, memory, pids (tenant "a")'],
    ['a=slots:1,', '"" is none of slots, memory, pids (tenant "a")'],
    ['a=memory:1', 'slots are missing (tenant "a")'],
    ['a=memory:1,b=slots:1', 'slots are missing (tenant "a")'],
    ['a=slots:1,slots:2', 'slots is given twice (tenant "a")'],
    ['a=slots:1,a=slots:2', 'tenant "a" has two quotas'],
    ...['0', '-1', '1.5', '1e3', '', 'x', '9007199254740992'].map((digits) => [
      `a=slots:1,memory:${digits}`,
      `memory must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER} (tenant "a")`,
    ]),
  ])('%j: %s', (text, why) => {
    expect(parsed(text!)).toBe(`NAME=slots:N[,memory:BYTES][,pids:N]: ${why}`)
  })

  test('is more tenants than are looked at', () => {
    const quotas = (count: number) => Array.from({ length: count }, (_, i) => `t${i}=slots:1`).join(',')
    expect(Object.keys(parsed(quotas(MAX_QUOTAS)))).toHaveLength(MAX_QUOTAS)
    expect(parsed(quotas(MAX_QUOTAS + 1))).toBe('NAME=slots:N[,memory:BYTES][,pids:N]: at most 1000 tenants')
  })
})

test('what was written is read back', () => {
  const name = fc.string({ minLength: 1 }).filter((text) => text.trim() === text && !/[,=]/.test(text))
  const amount = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER })
  const quota = fc.record({ slots: amount, memory: amount, pids: amount }, { requiredKeys: ['slots'] })
  fc.assert(
    fc.property(fc.uniqueArray(fc.tuple(name, quota), { selector: ([key]) => key, minLength: 1 }), (quotas) => {
      const text = quotas.map(([key, counters]) => {
        return `${key}=${Object.entries(counters)
          .map((counter) => counter.join(':'))
          .join(',')}`
      })
      const read = parseTenantQuotas(text.join(','))
      if (read instanceof Expected) throw new Error(read.what)
      expect([...read]).toEqual(
        quotas.map(([key, { slots, memory, pids }]) => {
          const more = { ...(memory !== undefined && { memory_bytes: memory }), ...(pids !== undefined && { pids }) }
          return [key, { task_slots: slots, ...more }]
        }),
      )
    }),
  )
})

/** The rules of the pool of runtime services, without a service. */
import { describe, expect, test } from 'bun:test'
import {
  MAX_LOST,
  type PoolState,
  pooledEntries,
  UNCHANGED,
  withAdded,
  withDrained,
  withFile,
  withRemoved,
} from '../../../control/rules/pool-state.ts'
import type { RuntimeEntry } from '../../../shared/settings/runtime-entry.ts'

const DRAIN = { since: 1 }

const entry = (name: string, host = name, labels: Readonly<Record<string, string>> = {}): RuntimeEntry => ({
  ...{ name, url: `http://${host}:1`, labels },
})
const flags = {
  configured: [{ ...entry('f', 'f', { zone: 'a' }), url: 'http://ada:secret@f:1' }, entry('own')],
  started: 'own',
}
const seen = (state: PoolState) =>
  [...pooledEntries(flags, state).values()].map(({ name, isConfigured, isDraining }) => [
    name,
    isConfigured,
    isDraining,
  ])
const lost = { isLost: true, attempts: 1 }
const kept = { isLost: false, attempts: 0 }

describe('the pool', () => {
  test('has those of the flags first, and their addresses and labels count', () => {
    const other = { ...UNCHANGED, added: [entry('g'), entry('f', 'elsewhere')] } // by another replica
    expect(seen(other)).toEqual([
      ['f', true, false],
      ['own', true, false],
      ['g', false, false],
    ])
    expect(() => withAdded(flags, other, entry('f', 'elsewhere'), 0)).toThrow('is set by --runtime-url')
    expect(withAdded(flags, UNCHANGED, entry('f', 'f', { zone: 'a' }), 0)).toBe(UNCHANGED)
  })

  test('removes, drains and gives back one of the flags, by name and address, and keeps no password', () => {
    const gone = withRemoved(flags, withDrained(flags, UNCHANGED, 'f', DRAIN), 'f', kept)
    expect(gone).toMatchObject({ draining: new Map(), removed: [{ name: 'f', url: 'http://f:1' }] })
    expect(JSON.stringify(gone)).not.toContain('secret')
    expect(seen(gone)).toEqual([['own', true, false]])
    expect(seen(withAdded(flags, gone, entry('f', 'f', { zone: 'a' }), 0))[0]).toEqual(['f', true, false])
    expect(() => withAdded(flags, gone, entry('f'), 0)).toThrow('change its address and its labels there')
    expect(seen(withAdded(flags, gone, entry('f', 'elsewhere'), 0))).toContainEqual(['f', false, false])
    expect(() => withRemoved(flags, UNCHANGED, 'own', lost)).toThrow('is started by --with-runtime')
  })

  test('has each address under one name; twins of an earlier version stay, and are added again', () => {
    const state = withAdded(flags, UNCHANGED, entry('g'), 0)
    const remedy = 'already: use that name, or remove it first'
    expect(() => withAdded(flags, state, entry('h', 'g'), 0)).toThrow(`runtime g is at http://g:1 ${remedy}`)
    expect(() => withAdded(flags, state, entry('h', 'f'), 0)).toThrow(`runtime f is at http://f:1 ${remedy}`)
    const both = withAdded(flags, state, entry('h'), 0)
    expect(() => withAdded(flags, both, entry('h', 'g'), 0)).toThrow(remedy)
    expect(seen(withAdded(flags, withRemoved(flags, state, 'g', kept), entry('h', 'g'), 0))).toHaveLength(3)
    const twins = { ...UNCHANGED, added: [entry('g'), entry('h', 'g')] }
    expect(withAdded(flags, twins, entry('h', 'g'), 0)).toBe(twins)
    expect(withAdded(flags, twins, entry('h', 'g', { gpu: '' }), 0).added[1]).toEqual(entry('h', 'g', { gpu: '' }))
  })

  test('has the token that was given with one, and none that was not', () => {
    const tokenIn = (state: PoolState, name: string) => pooledEntries(flags, state).get(name)?.token
    const given = withAdded(flags, UNCHANGED, { ...entry('g'), token: 'one' }, 0)
    expect(tokenIn(given, 'g')).toBe('one')
    expect(withAdded(flags, given, entry('g'), 0)).toBe(given)
    expect(tokenIn(withAdded(flags, given, entry('g', 'g', { gpu: '' }), 0), 'g')).toBe('one')
    expect(tokenIn(withAdded(flags, given, { ...entry('g'), token: 'two' }, 0), 'g')).toBe('two')
    expect(tokenIn(withAdded(flags, given, entry('g', 'elsewhere'), 0), 'g')).toBe('')
    expect(tokenIn(withAdded(flags, UNCHANGED, entry('h'), 0), 'h')).toBe('')
    const earlier = { ...UNCHANGED, added: [entry('g')] } // of a version without tokens
    expect(tokenIn(withAdded(flags, earlier, entry('g', 'g', { gpu: '' }), 0), 'g')).toBeUndefined()
    const own = { ...flags, configured: [{ ...entry('f'), token: 'of-the-flag' }] }
    expect(withAdded(own, UNCHANGED, { ...entry('f'), token: 'one' }, 0)).toBe(UNCHANGED)
    expect(withRemoved(own, UNCHANGED, 'f', kept).removed).toEqual([entry('f')])
  })

  test('names the nearest one to whoever misspells a name', () => {
    const state = withAdded(flags, UNCHANGED, entry('gpu-1'), 0)
    expect(() => withDrained(flags, state, 'gpu1', DRAIN)).toThrow('no runtime is named gpu1 (did you mean "gpu-1"?)')
    expect(() => withRemoved(flags, state, 'x', kept)).toThrow(/named x$/)
  })

  test('a drain that goes on keeps its time, with who and why of now', () => {
    const first = withDrained(flags, UNCHANGED, 'f', DRAIN)
    expect(withDrained(flags, first, 'f', { ...DRAIN, since: 2 })).toBe(first)
    const second = withDrained(flags, first, 'f', { since: 2, by: 'ops', why: 'a fan' })
    expect(second.draining.get('f')).toEqual({ since: DRAIN.since, by: 'ops', why: 'a fan' })
    expect(withDrained(flags, second, 'f', undefined)).toEqual(UNCHANGED)
    expect(withDrained(flags, UNCHANGED, 'f', undefined)).toBe(UNCHANGED)
  })

  test('counts each loss, over every return', () => {
    let state: PoolState = UNCHANGED
    for (const count of [1, 2, 3]) {
      state = withRemoved(flags, withAdded(flags, state, entry('g'), 0), 'g', lost)
      expect(state.losses.get('g')).toBe(count)
    }
    for (let i = 0; i < MAX_LOST + 5; i++) {
      state = withRemoved(flags, withAdded(flags, state, entry(`h${i}`), 0), `h${i}`, lost)
    }
    expect([state.losses.size, state.losses.has('g'), state.losses.has(`h${MAX_LOST}`)]).toEqual([
      MAX_LOST,
      false,
      true,
    ])
  })

  test('takes from a file only what no replica knows', () => {
    const shared = withDrained(flags, withAdded(flags, UNCHANGED, entry('g'), 0), 'g', DRAIN)
    const file = {
      ...UNCHANGED,
      added: [entry('g', 'old'), entry('h')],
      draining: new Map(['g', 'h'].map((name) => [name, { since: 0 }])),
      losses: new Map([['x', 2]]),
    }
    expect(withFile(shared, file)).toEqual({
      ...{
        added: [{ ...entry('g'), token: '' }, entry('h')],
        draining: new Map([
          ['g', DRAIN],
          ['h', { since: 0 }],
        ]),
        removed: [],
        losses: new Map([['x', 2]]),
      },
    })
  })
})

/** Goal: no attempt goes without a verdict, and none that is not proved to be blocked counts as blocked. */
import { describe, expect, test } from 'bun:test'
import type { Attempt, Listed, Verdict } from '../../../runtime/escape/attempts.ts'
import type { Collected } from '../../../runtime/escape/baits.ts'
import { type EscapeRun, verdicts, worstOf } from '../../../runtime/escape/verdicts.ts'

const listed: Listed[] = [
  { name: 'unmount', isAlone: false, what: 'unmounts' },
  { name: 'connect_loopback', isAlone: false, what: 'connects' },
  { name: 'memory', isAlone: true, what: 'fills memory' },
]
const NOTHING: Collected = { taken: [], refused: [] }
const blocked = (name: string): Attempt => ({ name, verdict: 'blocked', detail: `it ${name}s: no` })
const run = (said: Attempt[], more: Partial<EscapeRun> = {}): EscapeRun => ({
  said,
  ending: 'the sandbox ended with SIGKILL',
  isEndedByLimit: false,
  ...more,
})
const whole = run([blocked('unmount'), blocked('connect_loopback')])
const alone = (memory: EscapeRun) => new Map([['memory', memory]])

describe('the verdicts', () => {
  test('are what the program says', () => {
    const all = verdicts(listed, whole, alone(run([blocked('memory')])), NOTHING)
    expect(all).toEqual([blocked('unmount'), blocked('connect_loopback'), blocked('memory')])
  })

  test('are open for what it does not say, also when the kernel has ended it for its memory', () => {
    for (const isEndedByLimit of [false, true]) {
      const [unmount, connect] = verdicts(
        listed,
        run([blocked('unmount')], { isEndedByLimit }),
        alone(run([])),
        NOTHING,
      )
      expect(unmount).toEqual(blocked('unmount'))
      expect(connect).toEqual({
        name: 'connect_loopback',
        verdict: 'open',
        detail: 'it connects: the sandbox ended with SIGKILL',
      })
    }
  })

  test('are blocked for what goes past a limit and has the sandbox ended by the kernel, and open without that', () => {
    for (const [isEndedByLimit, verdict] of [
      [true, 'blocked'],
      [false, 'open'],
    ] as const) {
      const all = verdicts(listed, whole, alone(run([], { isEndedByLimit })), NOTHING)
      expect(all[2]).toMatchObject({
        name: 'memory',
        verdict,
        detail: 'it fills memory: the sandbox ended with SIGKILL',
      })
    }
  })

  test('believe who keeps the baits before the program', () => {
    const all = verdicts(listed, whole, alone(run([blocked('memory')])), { taken: ['tcp=8080'], refused: [] })
    expect(all[1]).toEqual({
      name: 'connect_loopback',
      verdict: 'open',
      detail: 'it connects: it did, on the host (tcp=8080)',
    })
    expect(all.filter(({ verdict }) => verdict === 'open').length).toBe(1)
  })
})

test('of what was refused on the host are blocked, whatever the program says, but not if it got through once', () => {
  const asked: Listed[] = [{ name: 'ask_service', isAlone: false, what: 'asks' }]
  const said = run([{ name: 'ask_service', verdict: 'open', detail: 'it asks: it got a connection' }])
  const refused = ['service=8080']
  const [attempt] = verdicts(asked, said, new Map(), { taken: [], refused })
  expect(attempt).toEqual({
    name: 'ask_service',
    verdict: 'blocked',
    detail: 'it asks: it has no token (service=8080)',
  })
  expect(verdicts(asked, said, new Map(), { taken: refused, refused })).toMatchObject([{ verdict: 'open' }])
  expect(verdicts(asked, said, new Map(), NOTHING)).toMatchObject([{ verdict: 'open' }])
})

describe('of two sandboxes', () => {
  const made = (verdict: Verdict, detail: string): Attempt => ({ name: 'connect', verdict, detail })

  test.each<[Verdict, Verdict, Verdict, string]>([
    ['blocked', 'blocked', 'blocked', 'strictest'],
    ['blocked', 'not_applicable', 'blocked', 'strictest'],
    ['not_applicable', 'blocked', 'blocked', 'default'],
    ['not_applicable', 'not_applicable', 'not_applicable', 'strictest'],
    ['open', 'open', 'open', 'strictest'],
    ['open', 'blocked', 'open', 'strictest'],
    ['blocked', 'open', 'open', 'default (in the default sandbox)'],
    ['not_applicable', 'open', 'open', 'default (in the default sandbox)'],
  ])('%s in the strictest and %s in the default one is %s', (strictest, byDefault, verdict, detail) => {
    const worst = worstOf([made(strictest, 'strictest')], [made(byDefault, 'default')], 'in the default sandbox')
    expect(worst).toEqual([made(verdict, detail)])
  })
})

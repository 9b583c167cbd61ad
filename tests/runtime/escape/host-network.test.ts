/** Goal: the network of the host excuses what it is for, and nothing else. */
import { expect, test } from 'bun:test'
import type { Attempt, Verdict } from '../../../runtime/escape/attempts.ts'
import { HOST_NETWORK_HAS, inHostNetwork } from '../../../runtime/escape/host-network.ts'
import { verdicts } from '../../../runtime/escape/verdicts.ts'
import { escapePlace, listed } from '../../support/escape.ts'

const made = (name: string, verdict: Verdict): Attempt => ({ name, verdict, detail: 'it did' })

test('what it has is among the attempts', () => {
  const names = listed().map(({ name }) => name)
  expect([...HOST_NETWORK_HAS].filter((name) => !names.includes(name))).toEqual([])
})

test('what gets through and may does not count, and is named; everything else counts', () => {
  const attempts = [made('connect_loopback', 'open'), made('route_v6', 'blocked')]
  const others = ['ask_service', 'raw_sockets', 'make_route', 'kill_host', 'keyring_read'].map((name) =>
    made(name, 'open'),
  )
  expect(inHostNetwork([...attempts, ...others])).toEqual({
    attempts: [made('connect_loopback', 'not_applicable'), made('route_v6', 'blocked'), ...others],
    has: ['connect_loopback'],
  })
})

test('an API with a token is asked, and refuses; one without is not blocked', async () => {
  for (const hasToken of [true, false]) {
    await using place = await escapePlace([], { hasToken })
    const said = await place.attempts([], ['--only', 'ask_service'])
    const attempt = listed().filter(({ name }) => name === 'ask_service')
    const run = { said, ending: '', isEndedByLimit: false }
    expect(verdicts(attempt, run, new Map(), await place.baits.collect())).toMatchObject([
      hasToken
        ? { verdict: 'blocked', detail: expect.stringMatching(/: it has no token \(service=\d+\)$/) }
        : { verdict: 'open', detail: expect.stringMatching(/: it did, on the host \(service=\d+\)$/) },
    ])
  }
})

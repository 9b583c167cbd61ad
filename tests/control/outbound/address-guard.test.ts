/** What requests of a tenant reach, whatever the service allows others. */
import { describe, expect, test } from 'bun:test'
import { AddressGuard, AddressRefused } from '../../../control/outbound/address-guard.ts'
import { parseReach } from '../../../shared/egress/rule.ts'

const NAMES: Readonly<Record<string, string[]>> = {
  localhost: ['127.0.0.1'],
  'public.example': ['93.184.215.14'],
  'inner.example': ['10.1.2.3'],
  'both.example': ['10.1.2.3', '93.184.215.14'],
}

const signal = new AbortController().signal
let reach: Readonly<Record<string, string[]>> = {}

describe.each(['any', 'public'] as const)('with the policy %s', (policy) => {
  const guard = new AddressGuard({
    ...{ policy, flag: 'http-policy' },
    addressesOf: async (name) => NAMES[name] ?? [],
    reachOf: (tenant) => (reach[tenant] ?? []).map(parseReach),
  })
  const reached = (tenant: string, url: string) =>
    guard
      .for(tenant)
      .addressesFor(new URL(url), signal)
      .catch((error) => (error instanceof AddressRefused ? 'refused' : String(error)))

  test.each([
    [{}, 'http://public.example/', ['93.184.215.14']],
    [{}, 'http://both.example/', ['93.184.215.14']],
    [{}, 'http://inner.example/', 'refused'],
    [{}, 'http://10.1.2.3/', 'refused'],
    [{}, 'http://localhost/', 'refused'],
    [{ acme: ['10.1.2.0/24:80'] }, 'http://inner.example/', ['10.1.2.3']],
    [{ acme: ['10.1.2.0/24:80'] }, 'http://inner.example:8080/', 'refused'],
    [{ acme: ['inner.example'] }, 'http://inner.example:8080/', ['10.1.2.3']],
    [{ acme: ['inner.example'] }, 'http://10.1.2.3/', 'refused'],
    [{ globex: ['10.0.0.0/8', 'inner.example'] }, 'http://inner.example/', 'refused'],
  ])('and %j a tenant reaches at %s: %p', async (listed, url, expected) => {
    reach = listed
    expect(await reached('acme', url)).toEqual(expected)
  })

  test('the list of now counts, also for a guard of before', async () => {
    reach = {}
    const ofAcme = guard.for('acme')
    const url = new URL('http://10.1.2.3/')
    expect(() => ofAcme.check(url)).toThrow(
      '10.1.2.3 (private) is no public address (the operator lists others in reach of tenant acme, in the tokens file)',
    )
    reach = { acme: ['10.1.2.3'] }
    ofAcme.check(url)
  })

  test('refusals count with those of the service, which has its own policy', async () => {
    reach = {}
    const before = guard.refusedByClass.get('private')!
    await reached('acme', 'http://inner.example/')
    expect(guard.refusedByClass.get('private')).toBe(before + 1)
    expect(guard.for(undefined)).toBe(guard)
  })
})

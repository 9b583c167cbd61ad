/**
 * Goal: each combination of namespaces gives what it says, whatever the host lacks. Method: all 128, as root and as another user,
 * on hosts that lack every possible set of namespaces. What they let through is tried in runtime-sandbox-combinations.
 */
import { describe, expect, test } from 'bun:test'
import { isolationOf } from '../../../runtime/plan/isolation.ts'
import { NAMESPACES, type Namespace } from '../../../shared/contract/runtime-request.ts'
import { hostWithout } from '../../support/capabilities.ts'

const SUBSETS = Array.from({ length: 2 ** NAMESPACES.length }, (_, bits) =>
  NAMESPACES.filter((_, i) => (bits & (1 << i)) !== 0),
)

const requestOf = (names: readonly Namespace[]) =>
  Object.fromEntries(NAMESPACES.map((name) => [name, names.includes(name)])) as Record<Namespace, boolean>

const namesIn = (namespaces: Partial<Record<Namespace, boolean>>) => NAMESPACES.filter((name) => namespaces[name])

describe.each([true, false])('of a service that is root: %p', (isRoot) => {
  test('a sandbox has what is requested and available, and a user namespace where only root can do without', () => {
    for (const requested of SUBSETS) {
      for (const lacking of SUBSETS) {
        const isolation = isolationOf(requestOf(requested), { ...hostWithout(...lacking), isRoot })
        const wanted = isRoot ? requested : NAMESPACES.filter((name) => name === 'user' || requested.includes(name))
        const got = wanted.filter((name) => !lacking.includes(name))
        expect([namesIn(isolation.namespaces), isolation.features]).toEqual([got, [...got, 'seccomp']])
        expect(isolation.lacking).toEqual(requested.filter((name) => lacking.includes(name)))
        expect(isolation.shared).toEqual({
          network: !got.includes('net'),
          serviceFiles: !got.includes('mount') && !isRoot,
          publicFiles: !got.includes('mount'),
        })
      }
    }
  })

  test('a combination warns of what it does not do', () => {
    const host = { ...hostWithout('memory_cgroup', 'pids_cgroup', 'seccomp'), isRoot, cgroup_version: 0 } as const
    for (const requested of SUBSETS) {
      const { warnings, features } = isolationOf(requestOf(requested), host)
      const has = (name: Namespace) => requested.includes(name)
      expect(features).not.toContain('seccomp')
      expect(warnings).toEqual([
        ...(has('user') || isRoot ? [] : [expect.stringContaining('user=false counts only where')]),
        ...(has('pid') && !has('mount') ? [expect.stringContaining('/proc shows the processes of the host')] : []),
        ...(has('pid') ? [] : [expect.stringMatching(/may outlive it where its launcher is killed\. Mend it\.$/)]),
      ])
    }
  })
})

test('a request that leaves the user namespace open gets one where there is one', () => {
  const { user: _, ...open } = requestOf(['mount'])
  expect(namesIn(isolationOf(open, hostWithout()).namespaces)).toEqual(['mount', 'user'])
  expect(isolationOf(open, hostWithout('user'))).toMatchObject({ namespaces: { user: false }, lacking: [] })
})

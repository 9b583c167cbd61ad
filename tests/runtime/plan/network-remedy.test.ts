/** Last words of programs without a network, and those of programs that failed for other reasons. */
import { describe, expect, test } from 'bun:test'
import { MAX_LAST_WORDS_BYTES, networkRemedy, refusedRemedy } from '../../../runtime/plan/network-remedy.ts'
import { type PlanSettings, planTask } from '../../../runtime/plan/plan.ts'
import type { SandboxPolicy } from '../../../shared/contract/runtime-request.ts'
import { hostWithout } from '../../support/capabilities.ts'
import { quickestMs } from '../../support/quickest.ts'
import { request } from '../../support/runtime-requests.ts'

const SETTINGS: PlanSettings = {
  ...{ capability_mode: 'adaptive', network: 'none', access: { runtime: 'token', control: 'token' } },
  default_limits: { pids_max: undefined, disk_bytes: undefined },
}
const planOf = (sandbox: SandboxPolicy) => planTask(request({ sandbox }), hostWithout(), SETTINGS)
const none = planOf({ profile: 'linux_sandbox' })
const lacksNetwork = (plan: typeof none, words: string) => networkRemedy(plan, words)?.includes('loopback') ?? false

describe('a task that failed for want of a network', () => {
  test.each([
    'curl: (6) Could not resolve host: example.com',
    "curl: (5) Couldn't resolve proxy name",
    "fatal: unable to access 'https://github.com/x/': Could not resolve host: github.com",
    'ssh: Could not resolve hostname github.com: Temporary failure in name resolution',
    "wget: unable to resolve host address 'example.com'",
    "wget: bad address 'example.com'",
    "E: Failed to fetch http://deb.debian.org/x  Temporary failure resolving 'deb.debian.org'",
    'Failed to establish a new connection: [Errno -3] Temporary failure in name resolution',
    'socket.gaierror: [Errno -2] Name or service not known',
    'npm error network request failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org',
    'npm error code ENOTFOUND',
    'connect: Network is unreachable',
    'Error: connect ENETUNREACH 1.1.1.1:443',
    'dial tcp: lookup proxy.golang.org on 127.0.0.53:53: read udp: connection refused',
    'java.net.UnknownHostException: repo1.maven.org',
    'failed to lookup address information: Temporary failure in name resolution',
    'ping: connect: Network is unreachable',
  ])('%s', (text) => {
    expect(lacksNetwork(none, text)).toBe(true)
    expect(lacksNetwork(none, `first\n${text}\nlast`)).toBe(true)
  })

  test.each([
    ...['', 'Segmentation fault', 'make: *** [Makefile:3: all] Error 2', 'connection refused', 'EFAULT: Bad address'],
    ...['npm error Could not resolve dependency: peer react', 'No such file or directory', 'no network'],
  ])('not: %j', (text) => {
    expect(lacksNetwork(none, text)).toBe(false)
  })

  test('had none: not one with the network of the host', () => {
    const words = 'curl: (6) Could not resolve host: example.com'
    for (const sandbox of [{}, { profile: 'linux_sandbox', network: 'host' }] as const) {
      expect(lacksNetwork(planOf(sandbox), words)).toBe(false)
    }
    expect(
      lacksNetwork(planTask(request({ sandbox: { profile: 'linux_sandbox' } }), hostWithout('net'), SETTINGS), words),
    ).toBe(false)
  })

  test('has rules, and a program that does not ask the proxy', () => {
    const rules = planOf({ profile: 'linux_sandbox', network: { allow: ['pypi.org'] } })
    expect(networkRemedy(rules, 'curl: (6) Could not resolve host: pypi.org')).toContain('through the proxy')
    expect(networkRemedy(rules, 'no such file')).toBeUndefined()
    expect(refusedRemedy('the connection to a:1 is refused')).toBe(
      'the connection to a:1 is refused. If the task needs it, add a rule to sandbox.network.allow',
    )
  })

  test('is told within a moment, whatever the words', () => {
    const hostile = ['lookup ', 'lookup a on ', 'could not resolve ', "bad address '", 'a'.repeat(300), ' ']
    for (const word of hostile) {
      const text = word.repeat(Math.ceil(MAX_LAST_WORDS_BYTES / word.length))
      expect(quickestMs(() => lacksNetwork(none, text))).toBeLessThan(100)
    }
  })
})

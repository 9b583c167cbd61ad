/** Goal: `serve` takes the settings of the contract. Method: the contract as tables; every setting by its own rules. */
import { describe, expect, test } from 'bun:test'
import { type ServeConfig, serveSettings } from '../../runtime/config.ts'
import { UsageError } from '../../shared/contract/errors.ts'
import { ipText } from '../../shared/egress/ip-address.ts'
import { flagName, readCommandLine, type Setting } from '../../shared/settings/flags.ts'

const read = (argv: string[], env: Record<string, string> = {}): ServeConfig =>
  readCommandLine(argv, env, serveSettings).values

function mistakeIn(argv: string[]): string {
  try {
    read(argv)
  } catch (error) {
    if (error instanceof UsageError) return error.message
    throw error
  }
  throw new Error(`${argv} was accepted`)
}

test.each<[string, keyof ServeConfig, string, unknown]>([
  ['SERVICE_RUNTIME_LISTEN_ADDR', 'listenAddr', '0.0.0.0:1', '0.0.0.0:1'],
  ['SERVICE_RUNTIME_ID', 'runtimeId', 'r1', 'r1'],
  ['SERVICE_RUNTIME_DEFAULT_CAPABILITY_MODE', 'defaultCapabilityMode', 'strict', 'strict'],
  ['SERVICE_RUNTIME_DEFAULT_NETWORK', 'defaultNetwork', 'host', 'host'],
  ['SERVICE_RUNTIME_DISABLE_LINUX_SANDBOX', 'disableLinuxSandbox', 'true', true],
  ['SERVICE_RUNTIME_DISABLE_CGROUP', 'disableCgroup', '1', true],
  ['SERVICE_RUNTIME_CAPACITY_MEMORY_BYTES', 'capacityMemoryBytes', '1024', 1_024],
  ['SERVICE_RUNTIME_CAPACITY_PIDS', 'capacityPids', '64', 64],
])('%s is --%s', (variable, key, text, value) => {
  expect(read([], { [variable]: text })[key] as unknown).toBe(value)
})

describe('a flag that may be repeated', () => {
  test('adds a tenant', () => {
    const argv = ['--tenant-quota', 'a=slots:2,memory:1024', '--tenant-quota=b=slots:1,pids:9']
    expect(read(argv).tenantQuota).toEqual(
      new Map([
        ['a', { task_slots: 2, memory_bytes: 1_024 }],
        ['b', { task_slots: 1, pids: 9 }],
      ]),
    )
  })

  test('adds a rule', () => {
    const { egressAllow, egressDeny } = read([
      ...['--egress-allow', 'PyPI.org:443', '--egress-allow=*.example:22 opaque', '--egress-deny=10.0.0.0/8'],
    ])
    expect([egressAllow, egressDeny].map((rules) => rules?.map(({ text }) => text))).toEqual([
      ['pypi.org:443', '*.example:22 opaque'],
      ['10.0.0.0/8'],
    ])
  })

  test('adds an address of control', () => {
    const { controlAddr } = read(['--control-addr', '[::1]:1,:2', '--control-addr=10.0.0.5:3'])
    expect(controlAddr.map(({ address, port }) => `${ipText(address)} ${port}`)).toEqual([
      '::1 1',
      '0.0.0.0 2',
      '10.0.0.5 3',
    ])
  })

  test('adds a path', () => {
    const { sandboxMask, sandboxExpose } = read([
      '--sandbox-mask=/a b',
      '--sandbox-mask',
      '/c',
      '--sandbox-expose=/a b/d',
    ])
    expect({ sandboxMask, sandboxExpose }).toEqual({ sandboxMask: ['/a b', '/c'], sandboxExpose: ['/a b/d'] })
  })
})

test.each([
  [
    ['--tenant-quota=a=slots:0'],
    `invalid value "a=slots:0" for --tenant-quota: expected NAME=slots:N[,memory:BYTES][,pids:N]: slots must be a whole number from 1 to ${Number.MAX_SAFE_INTEGER} (tenant "a")`,
  ],
  [['--sandbox-mask=/a,b'], 'invalid value "/a,b" for --sandbox-mask: expected absolute paths without commas'],
  [['--sandbox-expose='], 'invalid value "" for --sandbox-expose: expected absolute paths without commas'],
  [['--sandbox-uid=0'], 'invalid value "0" for --sandbox-uid: expected a whole number from 1 to 4294967294'],
  [['--max-running-tasks=0'], 'invalid value "0" for --max-running-tasks: expected a whole number from 1 to 10000'],
  [
    ['--capacity-pids=5000000'],
    'invalid value "5000000" for --capacity-pids: expected a whole number from 1 to 4194304',
  ],
  [
    ['--default-capability-mode=lenient'],
    'invalid value "lenient" for --default-capability-mode: expected adaptive or strict',
  ],
  [
    ['--egress-allow=https://x'],
    'invalid value "https://x" for --egress-allow: expected a host, not a URL, got "https://x"',
  ],
  [
    ['--egress-deny=10.0.0.1/8'],
    'invalid value "10.0.0.1/8" for --egress-deny: expected a network, which has no bits after its prefix: 10.0.0.0/8, got "10.0.0.1/8"',
  ],
  [
    ['--egress-deny=x:1 opaque'],
    'invalid value "x:1 opaque" for --egress-deny: expected a port from 1 to 65535 after the colon, got "x:1 opaque"',
  ],
  [
    ['--control-addr=control:8080'],
    'invalid value "control:8080" for --control-addr: expected addresses with ports, such as 10.0.0.5:18081',
  ],
])('%j is refused', (argv, message) => {
  expect(mistakeIn(argv)).toBe(message)
})

test('every setting has a sentence, and a default that it would accept', () => {
  for (const [key, setting] of Object.entries<Setting<unknown>>(serveSettings)) {
    expect(`${key}: ${setting.help}`).toMatch(/: [A-Z].*\.$/)
    expect(flagName(key)).toMatch(/^[a-z]+(-[a-z]+)*$/)
    if (setting.default !== undefined) expect(() => read([`--${flagName(key)}=${setting.default}`])).not.toThrow()
  }
})

test.each([
  [['--register', 'control'], 'expected an http: or https: address'],
  [['--advertise', 'http://h?x'], 'expected an http: or https: address'],
  [['--label', '_x'], 'expected labels as in gpu,zone=a: labels: expected names of 1 to 63 letters'],
  [['--label', 'a', '--label', 'a=1'], 'expected each label once, got "a" twice'],
])('%j is refused', (argv, fault) => {
  expect(mistakeIn(argv)).toContain(fault)
})

test('labels to register with', () => {
  expect(read(['--label', 'gpu', '--label', 'zone=a']).label).toEqual({ gpu: '', zone: 'a' })
})

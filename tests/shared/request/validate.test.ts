/**
 * Goal: a request is read with its defaults, or refused with a text that names the field, in the documented order.
 * Method: tables of bodies and texts; pairs of faults in one body, of which the earlier part must speak; random bodies,
 * right ones, mutilated ones and any JSON at all.
 */
import { describe, expect, test } from 'bun:test'
import { Value } from '@sinclair/typebox/value'
import fc from 'fast-check'
import {
  MAX_CPU_TIME_SEC,
  MAX_INLINE_BYTES,
  MAX_RULES_CHARACTERS,
  MAX_WALL_TIME_MS,
  SubmitTaskRequest,
} from '../../../shared/contract/runtime-request.ts'
import { MAX_RULES } from '../../../shared/egress/rules.ts'
import { MAX_PATH_BYTES, MAX_STRING_BYTES, MAX_STRINGS_BYTES } from '../../../shared/request/execution.ts'
import { RequestFault } from '../../../shared/request/fault.ts'
import { MAX_SUBDIR_BYTES } from '../../../shared/request/sandbox.ts'
import { SECRET_NAME_RULE } from '../../../shared/request/secrets.ts'
import { MAX_MAP_ENTRIES, MAX_MAP_KEY_CHARACTERS, MAX_MAP_VALUE_CHARACTERS } from '../../../shared/request/text.ts'
import { MAX_NAME_CHARACTERS, MAX_TASK_ID_CHARACTERS, readRequest } from '../../../shared/request/validate.ts'
import { COMMAND, NEW_TASK_ID, randomRequest, read, request } from '../../support/runtime-requests.ts'

/** The text of the fault that `work` throws. */
function faultOf(work: () => unknown): string {
  try {
    work()
  } catch (error) {
    if (error instanceof RequestFault) return error.message
    throw error
  }
  throw new Error('it was accepted')
}

/** The text of the fault of `body`. */
const messageFor = (body: unknown): string => faultOf(() => read(body))

const script = { execution: { kind: 'script', script: 'exit 0' } }
const execution = (fields: object) => ({ execution: { ...COMMAND.execution, ...fields } })
const rules = (network: object) => ({ ...COMMAND, sandbox: { profile: 'linux_sandbox', network } })
const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))

describe('a request', () => {
  test('gets its id and its defaults', () => {
    expect(read(COMMAND)).toEqual({
      task_id: NEW_TASK_ID,
      execution: { kind: 'command', program: '/bin/true', args: [], env: {} },
      limits: { wall_time_ms: 300_000, stdout_max_bytes: 4_194_304, stderr_max_bytes: 4_194_304 },
      sandbox: { profile: 'process', chroot: false },
      policy: {},
      control_context: {},
      metadata: {},
    })
  })

  test('may be a script, which runs with /bin/sh', () => {
    expect(read(script).execution).toEqual({ kind: 'script', script: 'exit 0', interpreter: ['/bin/sh'], env: {} })
  })

  test('with rules gets them in their normal form, and keeps them', () => {
    const given = { allow: ['PyPI.org.:443', '0x7f.1', '*.Bücher.example:22 opaque'], deny: ['[::ffff:10.0.0.0]/104'] }
    const { sandbox } = read(rules(given))
    expect(sandbox).toMatchObject({
      network: {
        allow: ['pypi.org:443', '127.0.0.1', '*.xn--bcher-kva.example:22 opaque'],
        ...{ deny: ['10.0.0.0/8'], max_connections: 256 },
      },
      namespaces: { net: true },
    })
    expect(read(rules(sandbox.network as object)).sandbox).toEqual(sandbox)
    expect(read(rules({})).sandbox.network).toEqual({ allow: [], deny: [], max_connections: 256 })
    expect(read(rules({ allow: null, max_bytes: 5, max_connections: 2_000 })).sandbox.network).toEqual({
      ...{ allow: [], deny: [], max_bytes: 5, max_connections: 2_000 },
    })
  })

  test('for linux_sandbox gets the namespaces that it does not name, but for user', () => {
    const { sandbox } = request({ sandbox: { profile: 'linux_sandbox', namespaces: { cgroup: true, pid: false } } })
    expect(sandbox.namespaces).toEqual({ mount: true, pid: false, uts: true, ipc: true, cgroup: true })
    expect(request({ sandbox: { profile: 'linux_sandbox', namespaces: { user: false } } }).sandbox.namespaces).toEqual({
      mount: true,
      ...{ pid: true, uts: true, ipc: true, cgroup: false, user: false },
    })
  })

  test('has net as the network says; the service decides where nothing is said', () => {
    const net = (sandbox: object) => request({ sandbox: { profile: 'linux_sandbox', ...sandbox } }).sandbox
    expect(net({ network: 'none' })).toMatchObject({ network: 'none', namespaces: { net: true } })
    expect(net({ network: 'host' })).toMatchObject({ network: 'host', namespaces: { net: false } })
    expect(net({ network: 'host', namespaces: { net: false } }).namespaces?.net).toBe(false)
    expect(net({ network: 'none', namespaces: { net: true } }).namespaces?.net).toBe(true)
    expect(net({ namespaces: { net: false } })).toMatchObject({ namespaces: { net: false } })
    expect(net({ namespaces: { net: false } })).not.toHaveProperty('network')
    for (const sandbox of [net({}), net({ network: null, namespaces: { net: null } })]) {
      expect(sandbox.namespaces).not.toHaveProperty('net')
      expect(sandbox).not.toHaveProperty('network')
    }
    expect(request({ sandbox: { network: 'host' } }).sandbox).toEqual({
      profile: 'process',
      chroot: false,
      network: 'host',
    })
  })

  test('takes null for absent at every depth', () => {
    const nulls = {
      task_id: null,
      execution: { kind: 'command', program: '/bin/true', args: null, script: null, interpreter: null, env: null },
      limits: { wall_time_ms: null, pids_max: null },
      sandbox: { profile: null, workspace_subdir: null, rootfs: null, chroot: null, namespaces: { mount: null } },
      policy: { capability_mode: null },
      control_context: { tenant: null, requires_strict_sandbox: null, labels: null },
      metadata: null,
    }
    const { sandbox, ...rest } = read(nulls)
    expect(rest).toEqual((({ sandbox: _, ...others }) => others)(read(COMMAND)))
    expect(sandbox.profile).toBe('process')
    const parts = { limits: null, sandbox: null, policy: null, control_context: null }
    expect(read({ ...COMMAND, ...parts })).toEqual(read(COMMAND))
  })

  test('has nothing in it that is unknown', () => {
    const body = `{"execution": {"kind": "command", "program": "a", "x-cwd": {"deep": ${'['.repeat(100_000)}${']'.repeat(100_000)}}}, "x-x": 1}`
    expect(read(body)).toEqual({ ...read(COMMAND), execution: { kind: 'command', program: 'a', args: [], env: {} } })
  })

  test('keeps names that objects have anyway', () => {
    const env = JSON.parse('{"__proto__": "1", "constructor": "2"}')
    const { execution: read, metadata } = request({ ...execution({ env }), metadata: env } as SubmitTaskRequest)
    expect(Object.entries(read.env)).toEqual([
      ['__proto__', '1'],
      ['constructor', '2'],
    ])
    expect(JSON.stringify(metadata)).toBe('{"__proto__":"1","constructor":"2"}')
  })

  test.each([
    ['a task_id of every kind of character', { task_id: 'aZ0-_.' }],
    ['a task_id as long as may be', { task_id: 'x'.repeat(MAX_TASK_ID_CHARACTERS) }],
    ['a task_id of dots', { task_id: '...' }],
    ['the fields of the other kind, if they are empty', execution({ script: ' ', interpreter: [] })],
    ['the same for a script', { execution: { ...script.execution, program: '', args: [] } }],
    ['an argument as long as may be', execution({ args: ['x'.repeat(MAX_STRING_BYTES)] })],
    ['a variable as long as may be', execution({ env: { A: 'x'.repeat(MAX_STRING_BYTES - 2) } })],
    ['10,000 arguments', execution({ args: new Array(10_000).fill('x'.repeat(100)) })],
    ['a script that is longer than any argument', { execution: { kind: 'script', script: 'x\n'.repeat(1_000_000) } }],
    ['a program as long as a path may be', execution({ program: 'x'.repeat(MAX_PATH_BYTES) })],
    ['limits as high as may be', { limits: { wall_time_ms: MAX_WALL_TIME_MS, stdout_max_bytes: MAX_INLINE_BYTES } }],
    ['a subdirectory with dots in its names', { sandbox: { workspace_subdir: './a..b/...' } }],
    ['an empty subdirectory', { sandbox: { workspace_subdir: '' } }],
    ['a rootfs without chroot', { sandbox: { rootfs: '/srv' } }],
    ['chroot with a rootfs', { sandbox: { profile: 'linux_sandbox', chroot: true, rootfs: '/srv' } }],
    ['no mount namespace without chroot', { sandbox: { profile: 'linux_sandbox', namespaces: { mount: false } } }],
    ['an owner with a space in it', { control_context: { owner: 'team a' } }],
    ['as much metadata as is kept', { metadata: many(MAX_MAP_ENTRIES) }],
    ['metadata with an empty key and value', { metadata: { '': '' } }],
  ])('may have %s', (_, parts) => {
    expect(() => read({ ...COMMAND, ...parts })).not.toThrow()
  })

  test.each([
    ['memory_bytes', '1152921504606846976'],
    ['pids_max', '1e30'],
    ['memory_bytes', '9007199254740993'],
  ])('that asks for more %s than can be counted (%s) asks for the most that can', (name, text) => {
    const body = `{"execution": {"kind": "command", "program": "a"}, "limits": {"${name}": ${text}}}`
    expect(read(body).limits).toMatchObject({ [name]: Number.MAX_SAFE_INTEGER })
  })
})

describe('a body that is not a request', () => {
  test.each<[string, RegExp | string]>([
    ['', 'invalid JSON: the body is empty'],
    ['{', /^invalid JSON: ./],
    ['{"execution": {}} x', /^invalid JSON: ./],
    ['null', 'invalid JSON: expected object with an execution, got null'],
    ['[]', 'invalid JSON: expected object with an execution, got array'],
    ['"x"', 'invalid JSON: expected object with an execution, got string'],
    ['{}', 'execution is required'],
    ['{"execution": null}', 'execution is required'],
    ['{"execution": []}', 'invalid JSON: execution: expected object, got array'],
    ['{"execution": {}, "task_id": 7}', 'invalid JSON: task_id: expected string, got number'],
  ])('%j is refused with %s', (body, message) => {
    expect(messageFor(body)).toMatch(message instanceof RegExp ? message : new RegExp(`^${RegExp.escape(message)}$`))
  })

  test('is not UTF-8', () => {
    const bytes = new Uint8Array([0x7b, 0xff, 0x7d])
    expect(messageFor(new TextDecoder('latin1').decode(bytes))).toMatch(/^invalid JSON: /)
  })
})

describe('a field of the wrong type is named', () => {
  test.each<[object, string]>([
    [execution({ kind: 1 }), 'execution.kind: expected command or script, got number'],
    [execution({ program: ['a'] }), 'execution.program: expected string, got array'],
    [execution({ args: 'a' }), 'execution.args: expected array of strings, got string'],
    [execution({ args: ['a', 1] }), 'execution.args[1]: expected string, got number'],
    [execution({ args: [null] }), 'execution.args[0]: expected string, got null'],
    [execution({ env: ['A=1'] }), 'execution.env: expected object of strings, got array'],
    [execution({ env: { A: 1 } }), 'execution.env.A: expected string, or object with placeholder_for, got number'],
    [
      execution({ env: { 'a b': null } }),
      'execution.env."a b": expected string, or object with placeholder_for, got null',
    ],
    [{ ...COMMAND, limits: 1 }, 'limits: expected object, got number'],
    [
      { ...COMMAND, limits: { wall_time_ms: '1' } },
      `limits.wall_time_ms: expected whole number from 1 to ${MAX_WALL_TIME_MS}, got string`,
    ],
    [{ ...COMMAND, limits: { pids_max: true } }, 'limits.pids_max: expected whole number above 0, got boolean'],
    [{ ...COMMAND, sandbox: { chroot: 'yes' } }, 'sandbox.chroot: expected true or false, got string'],
    [{ ...COMMAND, sandbox: { namespaces: { net: 1 } } }, 'sandbox.namespaces.net: expected true or false, got number'],
    ...[1, true, ['pypi.org']].map((network): [object, string] => [
      { ...COMMAND, sandbox: { profile: 'linux_sandbox', network } },
      `sandbox.network: expected none, host or an object of rules, got ${Array.isArray(network) ? 'array' : typeof network}`,
    ]),
    [rules({ allow: 'pypi.org' }), 'sandbox.network.allow: expected array of rules, got string'],
    [rules({ deny: [1] }), 'sandbox.network.deny[0]: expected string, got number'],
    [
      rules({ max_bytes: '1' }),
      `sandbox.network.max_bytes: expected whole number from 1 to ${Number.MAX_SAFE_INTEGER}, got string`,
    ],
    [{ ...COMMAND, sandbox: { profile: {} } }, 'sandbox.profile: expected process or linux_sandbox, got object'],
    [
      { ...COMMAND, sandbox: { namespaces: true } },
      'sandbox.namespaces: expected object with mount, pid, uts, ipc, net, cgroup, user, got boolean',
    ],
    [{ ...COMMAND, policy: 'strict' }, 'policy: expected object, got string'],
    [
      { ...COMMAND, control_context: { tenant: 1 } },
      'control_context.tenant: expected string that is not empty, got number',
    ],
    [{ ...COMMAND, control_context: { labels: { a: {} } } }, 'control_context.labels.a: expected string, got object'],
    [{ ...COMMAND, metadata: { a: 1 } }, 'metadata.a: expected string, got number'],
  ])('%j', (body, detail) => {
    expect(messageFor(body)).toBe(`invalid JSON: ${detail}`)
  })
})

const long = 'x'.repeat(200)

/** What is refused, by the part of the request that it is in, in the order of the checks. */
const FAULTS: Readonly<Record<string, readonly [parts: object, message: string][]>> = {
  task_id: [
    [{ task_id: '' }, 'task_id cannot be empty (leave it out to have one made)'],
    [{ task_id: 'a/b' }, 'task_id may only contain letters, digits, "-", "_" and "."'],
    [{ task_id: 'a\n' }, 'task_id may only contain letters, digits, "-", "_" and "."'],
    [{ task_id: 'ü' }, 'task_id may only contain letters, digits, "-", "_" and "."'],
    [{ task_id: 'x'.repeat(129) }, 'task_id has 129 characters (at most 128)'],
    [{ task_id: '.' }, 'task_id cannot be "." or ".."'],
    [{ task_id: '..' }, 'task_id cannot be "." or ".."'],
  ],
  execution: [
    [{ execution: {} }, 'execution.kind is required (command or script)'],
    [{ execution: { kind: 'function' } }, 'execution.kind must be command or script'],
    [{ execution: { kind: 'command' } }, 'execution.program is required for command tasks'],
    [{ execution: { kind: 'command', program: ' ', script: 'x' } }, 'execution.program is required for command tasks'],
    [execution({ script: 'x' }), 'execution.script must be empty for command tasks'],
    [execution({ interpreter: ['sh'] }), 'execution.interpreter must be empty for command tasks'],
    [{ execution: { kind: 'script' } }, 'execution.script is required for script tasks'],
    [{ execution: { kind: 'script', script: '\n' } }, 'execution.script is required for script tasks'],
    [{ execution: { kind: 'script', script: 'x', program: 'a' } }, 'execution.program must be empty for script tasks'],
    [{ execution: { kind: 'script', script: 'x', args: ['a'] } }, 'execution.args must be empty for script tasks'],
    ...[[], [''], [' ', 'a']].map((interpreter): [object, string] => [
      { execution: { kind: 'script', script: 'x', interpreter } },
      'execution.interpreter must name a program, or be left out',
    ]),
    [execution({ program: 'a\0b' }), 'execution.program cannot contain NUL characters'],
    [execution({ args: ['a', '\0'] }), 'execution.args[1] cannot contain NUL characters'],
    [execution({ env: { A: '\0' } }), 'execution.env.A cannot contain NUL characters'],
    [execution({ env: { 'A\0': '' } }), 'the name of execution.env."A\\u0000" cannot contain NUL characters'],
    [{ execution: { kind: 'script', script: 'a\0' } }, 'execution.script cannot contain NUL characters'],
    [
      { execution: { kind: 'script', script: 'x', interpreter: ['sh', '\0'] } },
      'execution.interpreter[1] cannot contain NUL characters',
    ],
    [execution({ args: ['\ud800'] }), 'execution.args[0] is not valid Unicode: it contains half of a surrogate pair'],
    [execution({ env: { '': 'a' } }), 'execution.env keys must be non-empty and cannot contain "="'],
    [execution({ env: { 'A=B': 'a' } }), 'execution.env keys must be non-empty and cannot contain "="'],
    [
      execution({ program: 'x'.repeat(MAX_PATH_BYTES + 1) }),
      'execution.program has 4096 bytes (a path has at most 4095)',
    ],
    [
      execution({ args: ['x'.repeat(MAX_STRING_BYTES + 1)] }),
      'execution.args[0] has 131072 bytes and a program takes at most 131071 in one string (write it to a file, or make it part of a script)',
    ],
    [
      execution({ args: ['ü'.repeat(65_536)] }),
      'execution.args[0] has 131072 bytes and a program takes at most 131071 in one string (write it to a file, or make it part of a script)',
    ],
    [
      execution({ env: { [long]: 'x'.repeat(MAX_STRING_BYTES - 200) } }),
      `execution.env."${'x'.repeat(64)}..." has 131072 bytes and a program takes at most 131071 in one string (write it to a file, or make it part of a script)`.replaceAll(
        '"',
        '',
      ),
    ],
    [
      execution({ args: new Array(300_000).fill('') }),
      `execution has 2700018 bytes of arguments and environment and a program takes at most ${MAX_STRINGS_BYTES} (write them to a file, or make them part of a script)`,
    ],
    [
      { execution: { kind: 'script', script: 'x', env: { A: 'x'.repeat(100_000), ...manyLong(20) } } },
      `execution has 2100287 bytes of arguments and environment and a program takes at most ${MAX_STRINGS_BYTES} (write them to a file, or make them part of a script)`,
    ],
  ],
  limits: [
    ...['wall_time_ms', 'cpu_time_sec', 'memory_bytes', 'pids_max', 'stdout_max_bytes', 'stderr_max_bytes'].flatMap(
      (name): [object, string][] => [
        [{ limits: { [name]: 0 } }, `limits.${name} must be greater than 0`],
        [{ limits: { [name]: -1.5 } }, `limits.${name} must be greater than 0`],
        [{ limits: { [name]: 1.5 } }, `limits.${name} must be a whole number`],
      ],
    ),
    [{ limits: { wall_time_ms: MAX_WALL_TIME_MS + 1 } }, 'limits.wall_time_ms must be at most 31536000000'],
    [{ limits: { cpu_time_sec: MAX_CPU_TIME_SEC + 1 } }, 'limits.cpu_time_sec must be at most 1000000000'],
    [{ limits: { stdout_max_bytes: MAX_INLINE_BYTES + 1 } }, 'limits.stdout_max_bytes must be at most 67108864'],
    [{ limits: { stderr_max_bytes: 1e300 } }, 'limits.stderr_max_bytes must be at most 67108864'],
  ],
  sandbox: [
    [
      { sandbox: { profile: 'linux_sandbox', network: 'rules' } },
      'sandbox.network must be none, host or an object of rules',
    ],
    [{ sandbox: { network: 'none' } }, 'sandbox.network=none requires sandbox.profile=linux_sandbox'],
    [
      { sandbox: { profile: 'linux_sandbox', network: 'host', namespaces: { net: true } } },
      'sandbox.network=host contradicts sandbox.namespaces.net=true (leave out sandbox.namespaces.net)',
    ],
    [
      { sandbox: { profile: 'linux_sandbox', network: 'none', namespaces: { net: false } } },
      'sandbox.network=none contradicts sandbox.namespaces.net=false (leave out sandbox.namespaces.net)',
    ],
    [{ sandbox: { network: {} } }, 'sandbox.network with rules requires sandbox.profile=linux_sandbox'],
    [
      { sandbox: { profile: 'linux_sandbox', network: {}, namespaces: { net: false } } },
      'sandbox.network with rules contradicts sandbox.namespaces.net=false (leave out sandbox.namespaces.net)',
    ],
    [rules({ allow: ['a', 'https://b'] }), 'sandbox.network.allow[1]: expected a host, not a URL, got "https://b"'],
    [
      rules({ deny: ['a opaque'] }),
      'sandbox.network.deny[0]: expected a name, an address or a network (10.0.0.0/8), got "a opaque"',
    ],
    [
      rules({ allow: Array(MAX_RULES + 1).fill('a') }),
      `sandbox.network.allow: expected at most ${MAX_RULES} rules, got ${MAX_RULES + 1}`,
    ],
    [
      rules({ allow: Array(MAX_RULES).fill('a'.repeat(60)), deny: Array(20).fill('b'.repeat(60)) }),
      `sandbox.network: all rules together have ${60 * (MAX_RULES + 20)} characters (at most ${MAX_RULES_CHARACTERS})`,
    ],
    [rules({ max_bytes: 0 }), 'sandbox.network.max_bytes must be greater than 0'],
    [rules({ max_connections: 1.5 }), 'sandbox.network.max_connections must be a whole number'],
    [rules({ max_connections: 2_001 }), 'sandbox.network.max_connections must be at most 2000'],
    [
      { execution: { ...COMMAND.execution, env: { A: { placeholder: 'b' } } } },
      'unknown field execution.env.A.placeholder (did you mean execution.env.A.placeholder_for?)',
    ],
    [
      { execution: { ...COMMAND.execution, env: { A: { placeholder_for: '../b' } } } },
      `execution.env.A.placeholder_for: ${SECRET_NAME_RULE}, got "../b"`,
    ],
    [rules({ alow: [] }), 'unknown field sandbox.network.alow (did you mean sandbox.network.allow?)'],
    [{ sandbox: { profile: 'vm' } }, 'sandbox.profile must be process or linux_sandbox'],
    [{ sandbox: { workspace_subdir: '/a' } }, 'sandbox.workspace_subdir must be relative'],
    ...['..', '../a', 'a/..', 'a/../b', '..'].map((workspace_subdir): [object, string] => [
      { sandbox: { workspace_subdir } },
      'sandbox.workspace_subdir cannot contain parent traversal',
    ]),
    [{ sandbox: { workspace_subdir: 'a\0' } }, 'sandbox.workspace_subdir cannot contain NUL characters'],
    [
      { sandbox: { workspace_subdir: 'a/'.repeat(MAX_SUBDIR_BYTES / 2 + 1) } },
      'sandbox.workspace_subdir has 1026 bytes (at most 1024)',
    ],
    [{ sandbox: { workspace_subdir: 'd/./'.repeat(129) } }, 'sandbox.workspace_subdir has 129 names (at most 128)'],
    [
      { sandbox: { workspace_subdir: `a/${'ü'.repeat(128)}` } },
      `sandbox.workspace_subdir: "${'ü'.repeat(64)}..." is longer than the 255 bytes of a file name`,
    ],
    [{ sandbox: { profile: 'linux_sandbox', chroot: true } }, 'sandbox.rootfs is required when sandbox.chroot=true'],
    [{ sandbox: { chroot: true, rootfs: ' ' } }, 'sandbox.rootfs is required when sandbox.chroot=true'],
    [{ sandbox: { chroot: true, rootfs: '/srv' } }, 'sandbox.chroot requires sandbox.profile=linux_sandbox'],
    [{ sandbox: { profile: 'linux_sandbox', chroot: true, rootfs: 'srv' } }, 'sandbox.rootfs must be an absolute path'],
    [{ sandbox: { rootfs: '/\0' } }, 'sandbox.rootfs cannot contain NUL characters'],
    [
      { sandbox: { rootfs: `/${'x'.repeat(MAX_PATH_BYTES)}` } },
      'sandbox.rootfs has 4096 bytes (a path has at most 4095)',
    ],
    [
      { sandbox: { profile: 'linux_sandbox', chroot: true, rootfs: '/srv', namespaces: { mount: false } } },
      'sandbox.namespaces.mount=false cannot be combined with sandbox.chroot=true',
    ],
  ],
  policy: [[{ policy: { capability_mode: 'lenient' } }, 'policy.capability_mode must be adaptive or strict']],
  control_context: [
    ...['control_plane_mode', 'tenant', 'owner', 'expected_runtime_profile'].flatMap((name): [object, string][] => [
      [{ control_context: { [name]: '' } }, 'control_context values cannot be empty strings'],
      [{ control_context: { [name]: ' \t' } }, 'control_context values cannot be empty strings'],
      [
        { control_context: { [name]: 'x'.repeat(MAX_NAME_CHARACTERS + 1) } },
        `control_context.${name} has 257 characters (at most 256)`,
      ],
    ]),
    [{ control_context: { labels: { a: '' } } }, 'control_context values cannot be empty strings'],
    [{ control_context: { labels: { ' ': 'a' } } }, 'control_context.labels keys cannot be empty'],
    ...[' a', 'a ', 'a\nb', 'a\x7f'].map((owner): [object, string] => [
      { control_context: { owner } },
      'control_context.owner cannot begin or end with a space or contain control characters: no kill could name it in a header',
    ]),
    [
      { control_context: { labels: many(MAX_MAP_ENTRIES + 1) } },
      'control_context.labels has 257 entries (at most 256 are kept)',
    ],
  ],
  metadata: [
    [{ metadata: many(MAX_MAP_ENTRIES + 1) }, 'metadata has 257 entries (at most 256 are kept)'],
    [
      { metadata: { ['x'.repeat(MAX_MAP_KEY_CHARACTERS + 1)]: '' } },
      'metadata: a key has 257 characters (at most 256)',
    ],
    [{ metadata: { a: 'x'.repeat(MAX_MAP_VALUE_CHARACTERS + 1) } }, 'metadata.a has 65537 characters (at most 65536)'],
  ],
}

function manyLong(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`B${i + 10}`, 'x'.repeat(100_000)]))
}

describe.each(Object.entries(FAULTS))('%s', (_, faults) => {
  const named = faults.map(([parts, message]) => [JSON.stringify(parts).slice(0, 100), parts, message] as const)
  test.each(named)('%s is refused', (_text, parts, message) => {
    expect(messageFor({ ...COMMAND, ...parts })).toBe(message)
  })
})

test.each([
  [{ sandbox: { profil: 'linux_sandbox' } }, 'sandbox.profil', 'sandbox.profile'],
  [{ sandbx: {} }, 'sandbx', 'sandbox'],
  [{ limits: { memory: 1 } }, 'limits.memory', 'limits.memory_bytes'],
  [{ limits: { colour: 1 } }, 'limits.colour', undefined],
  [{ sandbox: { namespaces: { network: true } } }, 'sandbox.namespaces.network', 'sandbox.namespaces.net'],
  [{ memory_bytes: 1 }, 'memory_bytes', 'limits.memory_bytes'],
  [{ timeout: 1 }, 'timeout', 'limits.wall_time_ms'],
  [{ program: 'ls' }, 'program', 'execution.program'],
  [{ execution: { kind: 'command', progam: 'ls' } }, 'execution.progam', 'execution.program'],
  [{ limits: { metadata: {} } }, 'limits.metadata', 'metadata'],
  [{ colour: 'red' }, 'colour', undefined],
  [{ limits: { status: 'success' } }, 'limits.status', undefined],
  [{ limits: { 'a "b"\n': 1 } }, '"limits.a \\"b\\"\\n"', undefined],
  [{ ['y'.repeat(200)]: 1 }, `"${'y'.repeat(128)}..."`, undefined],
])('an unknown field is refused with its path: %j', (parts, path, nearest) => {
  const hint = nearest === undefined ? '' : ` (did you mean ${nearest}?)`
  expect(messageFor({ ...COMMAND, ...parts })).toBe(`unknown field ${path}${hint}`)
})

test('a field of the wrong type is named before one that is unknown, and that before any value', () => {
  const unknown = { sandbx: {} }
  expect(messageFor({ ...COMMAND, ...unknown, limits: { pids_max: 'x' } })).toStartWith('invalid JSON: limits.pids_max')
  expect(messageFor({ ...COMMAND, ...unknown, task_id: 'a/b' })).toBe('unknown field sandbx (did you mean sandbox?)')
})

test('fields that are free, and names in maps, are no unknown ones', () => {
  const own = { 'x-a': 1, x_b: { c: 1 }, annotations: { d: 'e' }, metadata: { sandbx: 'f' } }
  const execution = { ...COMMAND.execution, 'x-a': 1, env: { PROGAM: 'g' } }
  const whole = { ...own, execution, sandbox: { 'x-a': 1, namespaces: { x_a: 1 } }, limits: { 'x-a': 1 } }
  expect(read(whole)).toEqual({
    ...request({ metadata: own.metadata, sandbox: { namespaces: {} } }),
    execution: { ...request().execution, env: execution.env },
  })
})

test('where they are ignored, unknown fields change nothing; but an unknown namespace is refused, as it is no detail', () => {
  const bytes = (body: object) => new TextEncoder().encode(JSON.stringify(body))
  const sloppy = bytes({ ...COMMAND, sandbx: {}, limits: { memory: 1 } })
  expect(readRequest(sloppy, NEW_TASK_ID, 'ignore')).toEqual(request())
  const message = faultOf(() =>
    readRequest(bytes({ ...COMMAND, sandbox: { namespaces: { nett: true } } }), NEW_TASK_ID, 'ignore'),
  )
  expect(message).toBe('unknown field sandbox.namespaces.nett (did you mean sandbox.namespaces.net?)')
})

test('of two faults the one in the earlier part is named', () => {
  const firsts = Object.values(FAULTS).map((faults) => faults[0]!)
  for (const [i, [parts, message]] of firsts.entries()) {
    for (const [later] of firsts.slice(i + 1)) expect(messageFor({ ...COMMAND, ...later, ...parts })).toBe(message)
    expect(messageFor({ ...COMMAND, ...parts, metadata: 7 })).toBe(
      'invalid JSON: metadata: expected object of strings, got number',
    )
  }
})

test('the types that the schema documents are those that are read', () => {
  fc.assert(
    fc.property(randomRequest, (body) => {
      const given = read(body)
      expect(Value.Check(SubmitTaskRequest, JSON.parse(JSON.stringify(given)))).toBe(true)
      expect(read(JSON.parse(JSON.stringify(given)))).toEqual(given)
    }),
    { numRuns: 500 },
  )
})

test('what the schema does not allow is never accepted', () => {
  const values = fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.constantFrom<unknown>('', 0, -1, 1.5, '..', '\0', [], {}))
  fc.assert(
    fc.property(randomRequest, fc.nat(), values, (body, pick, value) => {
      const places = placesIn(body)
      const [holder, key] = places[pick % places.length]!
      holder[key] = value
      const accepted = outcome(body)
      if (accepted) expect(Value.Check(SubmitTaskRequest, withoutNulls(body))).toBe(true)
    }),
    { numRuns: 2_000 },
  )
})

test('any JSON at all is read or refused in words', () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      outcome(text)
    }),
  )
})

/** Whether a body is accepted; anything but a fault is thrown on. */
function outcome(body: unknown): boolean {
  try {
    read(body)
    return true
  } catch (error) {
    if (!(error instanceof RequestFault)) throw error
    expect(error.message.length).toBeLessThan(500)
    return false
  }
}

type Holder = Record<string, unknown>

/** Every known field of a body, with what it is in. */
function placesIn(body: Holder): [Holder, string][] {
  const inner = ['execution', 'limits', 'sandbox', 'policy', 'control_context']
  const own = [...inner, 'task_id', 'metadata'].map((key): [Holder, string] => [body, key])
  const below = inner.flatMap((part) => {
    const holder = body[part] as Holder | null | undefined
    const keys = Object.keys(SubmitTaskRequest.properties[part as 'limits'].properties)
    return holder ? keys.map((key): [Holder, string] => [holder, key]) : []
  })
  return [...own, ...below]
}

/** As the schema knows it: a null is absent, a blank field of the other kind is fine. */
function withoutNulls(value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, member]) => member !== null)
      .map(([key, member]) => [key, withoutNulls(member)]),
  )
}

/**
 * The body of POST /api/v1/tasks of the runtime service.
 *
 * The schemas document and give the types. Control offers them to agents in its tools and checks runtime actions with them.
 * The runtime service decodes requests by them and validates the values by the rules of `shared/request/`. A `null`
 * in an optional field means absent. Unknown fields are refused. `expected` completes a sentence such as
 * `limits.pids_max: expected whole number above 0`.
 */
import type { Static, TProperties } from '@sinclair/typebox'
import { Type } from './schema-builder.ts'
import { secretMap } from './secrets.ts'
import { MAX_PRIORITY, MIN_PRIORITY, priorityExpected } from './start-order.ts'
import { ANY_NAME, stringMap } from './string-map.ts'
import { inputMap, RequestedInput } from './task-inputs.ts'

/** Milliseconds: a year. Longer than any task runs, and far below the limits of kernel timers. */
export const MAX_WALL_TIME_MS = 365 * 24 * 3_600_000

/** Seconds: some thirty years of one CPU. From 1.8e10 on the kernel's arithmetic on RLIMIT_CPU overflows. */
export const MAX_CPU_TIME_SEC = 1_000_000_000

/** Bytes of a stream in a status. Reading more would block the event loop. Logs have no such limit. */
export const MAX_INLINE_BYTES = 64 * 1024 * 1024

export const DEFAULT_WALL_TIME_MS = 300_000
export const DEFAULT_INLINE_BYTES = 4 * 1024 * 1024

export const EXECUTION_KINDS = ['command', 'script'] as const
export type ExecutionKind = (typeof EXECUTION_KINDS)[number]

export const SANDBOX_PROFILES = ['process', 'linux_sandbox'] as const
export type SandboxProfile = (typeof SANDBOX_PROFILES)[number]

export const CAPABILITY_MODES = ['adaptive', 'strict'] as const
export type CapabilityMode = (typeof CAPABILITY_MODES)[number]

/** `none`: loopback of its own. `host`: the network of the host. */
export const NETWORKS = ['none', 'host'] as const
export type Network = (typeof NETWORKS)[number]

/** `sandbox.network` with rules: connections of a task at a time. The forwarder of a sandbox has room for 2,048. */
export const DEFAULT_MAX_CONNECTIONS = 256
export const MAX_MAX_CONNECTIONS = 2_000

/** Characters of all rules of a task together. They are part of each of its statuses. */
export const MAX_RULES_CHARACTERS = 16_384

export const NAMESPACES = ['mount', 'pid', 'uts', 'ipc', 'net', 'cgroup', 'user'] as const
export type Namespace = (typeof NAMESPACES)[number]

const text = (description: string, more: object = {}) =>
  Type.Optional(Type.String({ expected: 'string', description, ...more }))
const flag = (description: string) => Type.Optional(Type.Boolean({ expected: 'true or false', description }))
const texts = (description: string, examples: string[][]) =>
  Type.Optional(Type.Array(Type.String(), { expected: 'array of strings', description, examples }))
const textMap = (description: string, examples: object[]) =>
  Type.Optional(stringMap({ expected: 'object of strings', description, examples }))
const part = <T extends TProperties>(properties: T, description: string) =>
  Type.Optional(Type.Object(properties, { expected: 'object', description }))

/** A whole number above 0, up to `maximum` if given. */
const count = (description: string, examples: number[], more: { maximum?: number; default?: number } = {}) => {
  const expected = more.maximum === undefined ? 'whole number above 0' : `whole number from 1 to ${more.maximum}`
  return Type.Optional(Type.Integer({ minimum: 1, expected, description, examples, ...more }))
}

const oneOf = <const V extends string>(values: readonly [V, V], description: string, more: object = {}) =>
  Type.Optional(
    Type.Union([Type.Literal(values[0]), Type.Literal(values[1])], {
      ...{ expected: values.join(' or '), description },
      ...more,
    }),
  )

/** A variable whose text the proxy replaces by a secret, in headers of requests. */
const PlaceholderFor = Type.Object(
  { placeholder_for: Type.String({ description: 'Name of the secret.' }) },
  { additionalProperties: false },
)

/** The fields for a command and those for a script exclude each other. */
export const ExecutionSpec = Type.Object({
  kind: oneOf(EXECUTION_KINDS, 'Whether a program or the body of a script is run. Required.'),
  program: text('Program: a path, or a name that is looked up in PATH.', { examples: ['/usr/bin/make', 'go'] }),
  args: texts('Arguments, passed on as they are.', [['test', './...']]),
  script: text('Body of the script.', { examples: ['set -eu\nls -la\nwc -l *.txt'] }),
  interpreter: texts('Program and flags that run the script. Default /bin/sh.', [['/usr/bin/python3', '-I']]),
  env: Type.Optional(
    Type.Record(
      Type.String({ pattern: ANY_NAME }),
      Type.Union([Type.String(), PlaceholderFor], {
        description: 'Text, or {"placeholder_for"}: the proxy replaces what stands there by a secret.',
        expected: 'string, or object with placeholder_for',
      }),
      {
        expected: 'object of strings',
        description:
          'Environment variables, besides a minimal set. Names may not contain "=". {"placeholder_for": secret} is a text that the proxy replaces in headers of requests (sandbox.network.allow).',
        examples: [{ CI: '1' }, { API_KEY: { placeholder_for: 'api-token' } }],
      },
    ),
  ),
  stdin: text('Text that it reads on its standard input. Default: nothing.'),
})
export type ExecutionSpec = Static<typeof ExecutionSpec>

const inlineBytes = (stream: string) =>
  count(`Bytes of ${stream} in the result; the rest is kept on disk. Default ${DEFAULT_INLINE_BYTES}.`, [65_536], {
    maximum: MAX_INLINE_BYTES,
    default: DEFAULT_INLINE_BYTES,
  })

/** `memory_bytes` and `pids_max` have no upper bound: values that no host has are refused as `insufficient_resources`. */
export const ResourceLimits = Type.Object({
  wall_time_ms: count(`Milliseconds until the task is ended. Default ${DEFAULT_WALL_TIME_MS}.`, [60_000], {
    maximum: MAX_WALL_TIME_MS,
    default: DEFAULT_WALL_TIME_MS,
  }),
  cpu_time_sec: count('Seconds of CPU time. Default none.', [30], { maximum: MAX_CPU_TIME_SEC }),
  memory_bytes: count(
    'Bytes of address space; in linux_sandbox memory of the whole task, where there is a memory cgroup. Default none.',
    [1_073_741_824],
  ),
  pids_max: count(
    'Processes and threads at a time. Default none; in linux_sandbox that of the service (--sandbox-pids-max), where there is a pids cgroup.',
    [128],
  ),
  disk_bytes: count(
    'Bytes that it may allocate in its workspace, besides inputs. Default --task-disk-bytes.',
    [1_073_741_824],
  ),
  stdout_max_bytes: inlineBytes('stdout'),
  stderr_max_bytes: inlineBytes('stderr'),
})
export type ResourceLimits = Static<typeof ResourceLimits>

const carriedSecrets = (expected: string, description: string, examples: object[]) =>
  Type.Optional(
    Type.Record(
      Type.String({ pattern: ANY_NAME }),
      Type.Object(
        {
          secret: Type.String({ description: 'Name of the secret.' }),
          prefix: Type.Optional(Type.String({ description: 'What stands before the value.' })),
        },
        { additionalProperties: false, expected: 'object with secret, and prefix' },
      ),
      { expected, description, examples },
    ),
  )

/** A rule about single requests. The proxy adds secrets of the service to those that match, which the task never sees. */
export const RequestRule = Type.Object(
  {
    host: Type.String({ expected: 'string', description: 'Hosts, as in a rule that is a text.' }),
    headers: carriedSecrets('object of names of headers', 'Headers that the proxy adds, or replaces.', [
      { Authorization: { secret: 'api-token', prefix: 'Bearer ' } },
    ]),
    basic: Type.Optional(
      Type.Object(
        {
          user: Type.String({ expected: 'string', description: 'Name of the user.' }),
          secret: Type.String({ expected: 'string', description: 'Name of the secret with the password.' }),
        },
        {
          additionalProperties: false,
          expected: 'object with user and secret',
          description: 'Credentials of HTTP Basic, which the proxy adds.',
          examples: [{ user: 'git', secret: 'forge-token' }],
        },
      ),
    ),
    query: carriedSecrets('object of names of parameters', 'Parameters of the query that it adds, or replaces.', [
      { key: { secret: 'api-token' } },
    ]),
    methods: texts('Only requests with these methods pass. Default all.', [['GET', 'HEAD']]),
    paths: texts(
      'Only requests to these paths pass: "*" is a part of one name, "**" any number of names. Default all.',
      [['/v1/**']],
    ),
  },
  {
    additionalProperties: false,
    expected: 'object with host',
    description: 'A rule about single requests, to which the proxy adds secrets of the runtime service.',
  },
)
export type RequestRule = Static<typeof RequestRule>

/** Rules about the connections of a task. Without any, it reaches nothing. */
export const NetworkRules = Type.Object(
  {
    allow: Type.Optional(
      Type.Array(
        Type.Union([Type.String(), RequestRule], {
          expected: 'string, or object with host',
          description: 'Hosts, or {"host", "headers", "basic", "query", "methods", "paths"}.',
        }),
        {
          expected: 'array of rules',
          description:
            'Hosts that the task may connect to: names, *.names, addresses, networks, or *; each may end with a port, and then with " opaque". Or an object about requests to such a host. Default none.',
          examples: [
            ['pypi.org:443', '*.pythonhosted.org:443', '10.0.0.0/8:5432'],
            [{ host: 'api.example.com', headers: { Authorization: { secret: 'api-token', prefix: 'Bearer ' } } }],
          ],
        },
      ),
    ),
    deny: texts('Hosts that it may not connect to, although allow covers them.', [['*.internal.example']]),
    max_bytes: count('Bytes that it may send and receive together. Default: no limit.', [1_073_741_824], {
      maximum: Number.MAX_SAFE_INTEGER,
    }),
    max_connections: count(`Connections at a time. Default ${DEFAULT_MAX_CONNECTIONS}.`, [64], {
      maximum: MAX_MAX_CONNECTIONS,
      default: DEFAULT_MAX_CONNECTIONS,
    }),
  },
  {
    additionalProperties: false, // a misspelt rule must not silently widen the network
    expected: 'object with allow, deny, max_bytes, max_connections',
    description: 'Rules: a proxy connects the task to what they allow, and to nothing else.',
  },
)
export type NetworkRules = Static<typeof NetworkRules>

export const SandboxPolicy = Type.Object({
  profile: oneOf(SANDBOX_PROFILES, 'Default process.'),
  workspace_subdir: text('Working directory, relative to the workspace; without "..".', { examples: ['src'] }),
  rootfs: text('Directory that becomes the root, with chroot.', { examples: ['/srv/rootfs/debian'] }),
  chroot: flag('Change the root to rootfs; only with linux_sandbox.'),
  network: Type.Optional(
    Type.Union([Type.Literal('none'), Type.Literal('host'), NetworkRules], {
      expected: 'none, host or an object of rules',
      description:
        'Network of a task in linux_sandbox: none is loopback of its own, host is the network of the host, an object has rules ({} allows nothing). Default: as the service is set (--default-network), else none.',
      examples: [{ allow: ['pypi.org:443', '*.pythonhosted.org:443'] }],
    }),
  ),
  namespaces: Type.Optional(
    Type.Object(
      {
        mount: flag('Mounts of its own: a read-only view of the host or of rootfs. Default true.'),
        pid: flag('Processes of its own: it sees no others. Default true.'),
        uts: flag('A host name of its own. Default true.'),
        ipc: flag('Message queues and shared memory of its own. Default true.'),
        net: flag(
          'A network of its own, with nothing on it but loopback; false: the network of the host. As network none and host, which it must not contradict.',
        ),
        cgroup: flag('A cgroup tree of its own to look at. Default false.'),
        user: flag('User ids of its own. Default true wherever the host allows it; false counts only as root.'),
      },
      {
        additionalProperties: false, // a misspelt namespace must not silently weaken the sandbox
        expected: `object with ${NAMESPACES.join(', ')}`,
        description: 'What the task has of its own, with linux_sandbox.',
      },
    ),
  ),
})
export type SandboxPolicy = Static<typeof SandboxPolicy>

export const TaskPolicy = Type.Object({
  capability_mode: oneOf(
    CAPABILITY_MODES,
    'What the host cannot do: adaptive does without and reports it, strict refuses the task. Default: as the service is set.',
  ),
})
export type TaskPolicy = Static<typeof TaskPolicy>

const name = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, expected: 'string that is not empty', description }))

/** None of these fields is a credential. */
export const ControlContext = Type.Object({
  control_plane_mode: name('Mode of the caller, in its own words.'),
  tenant: name('Tenant whose quota counts.'),
  tenant_only: flag(
    'Only what is there for the tenant: secrets whose rules name it, and public addresses unless --egress-allow lists others. Needs tenant; set for tokens with a tenant.',
  ),
  owner: name('Owner; only a kill that names it is obeyed.'),
  expected_runtime_profile: name('Profile that the caller expects.'),
  requires_strict_sandbox: flag('Refuse the task rather than do without anything that it asks for.'),
  requires_resource_reservation: flag('Recorded only: resources are always reserved.'),
  labels: textMap('Labels.', [{ team: 'build' }]),
})
export type ControlContext = Static<typeof ControlContext>

/** The body of POST /api/v1/tasks. */
export const SubmitTaskRequest = Type.Object(
  {
    task_id: text('1 to 128 letters, digits, "-", "_" and "."; not "." or "..". Without one, an id is made.', {
      examples: ['build-7'],
    }),
    execution: Type.Optional(
      Type.Object(ExecutionSpec.properties, { expected: 'object', description: 'What is run.', needs: ['kind'] }),
    ),
    secrets: Type.Optional(
      secretMap({
        description:
          'Variables whose values the runtime service has (--secrets-dir): variable to name of the secret, or {"name", "file"} to have the value in a file of the workspace and its path in the variable. Values are *** in what the task prints, unless {"name", "mask": false} says otherwise.',
        examples: [{ TOKEN: 'registry-token' }, { KUBECONFIG: { name: 'cluster', file: '.kube/config' } }],
      }),
    ),
    inputs: Type.Optional(
      inputMap(RequestedInput, {
        description:
          'What is put into the workspace before the start, by its path there: a file or a directory of an ended task, or a file with this content.',
        examples: [
          { 'lib/app.tar': { task_id: 'build-7', file: 'dist/app.tar' } },
          { 'list.txt': { content: 'a\nb\n' } },
        ],
      }),
    ),
    outputs: texts(
      'Files of the workspace that are kept when the task has ended; the others are removed. * and ? stand for characters of a name, ** for any directories. Default: all are kept.',
      [['dist/**', 'report.xml']],
    ),
    priority: Type.Optional(
      Type.Integer({
        ...{ minimum: MIN_PRIORITY, maximum: MAX_PRIORITY, expected: priorityExpected },
        description: 'Of the tasks that wait in the queue, those with the highest are looked at first. Default 0.',
      }),
    ),
    limits: part(ResourceLimits.properties, 'What the task may use.'),
    sandbox: part(SandboxPolicy.properties, 'How far the task is fenced in.'),
    policy: part(TaskPolicy.properties, 'What happens where the host cannot do all of this.'),
    control_context: part(ControlContext.properties, 'On whose behalf.'),
    metadata: textMap('Kept with the task by the runtime service.', [{ purpose: 'nightly' }]),
  },
  { title: 'SubmitTaskRequest', needs: ['execution'] },
)
export type SubmitTaskRequest = Static<typeof SubmitTaskRequest>

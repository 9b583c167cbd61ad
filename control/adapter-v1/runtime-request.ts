/**
 * What the runtime service is asked for: a program or a script, with limits, sandbox, policy and context. Pure.
 *
 * An action gives it whole, as the runtime service takes it (`execution` and the rest), or flat: the fields of `execution`
 * beside the rest. A runtime task holds it whole. What the runtime service judges itself (paths, capabilities, quotas)
 * is not judged here.
 */
import { type TObject, type TProperties, Type } from '@sinclair/typebox'
import type { ActionKind } from '../../shared/contract/adapter-v1.ts'
import type { Input } from './input-check.ts'
import { invalidAction } from './request.ts'

const text = (description: string, more: object = {}) =>
  Type.Optional(Type.String({ expected: 'string', description, ...more }))
const flag = (description: string) => Type.Optional(Type.Boolean({ expected: 'true or false', description }))
const texts = (description: string, examples: string[][]) =>
  Type.Optional(Type.Array(Type.String(), { expected: 'array of strings', description, examples }))
const textMap = (description: string, examples: object[]) =>
  Type.Optional(Type.Record(Type.String(), Type.String(), { expected: 'object of strings', description, examples }))
const positive = (description: string, examples: number[], more: object = {}) =>
  Type.Optional(Type.Number({ exclusiveMinimum: 0, expected: 'number above 0', description, examples, ...more }))
const part = <T extends TProperties>(properties: T, description: string) =>
  Type.Optional(Type.Object(properties, { expected: 'object', description }))

const program = text('Program: a path, or a name that is looked up in PATH.', { examples: ['/usr/bin/make', 'go'] })
const args = texts('Arguments, passed on as they are.', [['test', './...']])
const script = text('Body of the script.', { examples: ['set -eu\nls -la\nwc -l *.txt'] })
const interpreter = texts('Program and flags that run the script. Default /bin/sh.', [['/usr/bin/python3', '-I']])
const env = textMap('Environment variables, besides a minimal set. Names may not contain "=".', [{ CI: '1' }])

const limits = part(
  {
    wall_time_ms: positive('Milliseconds until the task is ended. Default 300000.', [60_000], { default: 300_000 }),
    cpu_time_sec: positive('Seconds of CPU time. Default none.', [30]),
    memory_bytes: positive('Bytes of address space. Default none.', [1_073_741_824]),
    pids_max: positive('Processes and threads at a time. Default none.', [128]),
    stdout_max_bytes: positive('Bytes of stdout in the result; the rest is kept on disk. Default 4194304.', [65_536]),
    stderr_max_bytes: positive('Bytes of stderr in the result; the rest is kept on disk. Default 4194304.', [65_536]),
  },
  'What the task may use.',
)

const NAMESPACES = ['mount', 'pid', 'uts', 'ipc', 'net', 'cgroup', 'user'] as const
const namespace = flag('Whether it is unshared.')

const sandbox = part(
  {
    profile: Type.Optional(
      Type.Union([Type.Literal('process'), Type.Literal('linux_sandbox')], {
        expected: 'process or linux_sandbox',
        description: 'Default process.',
      }),
    ),
    workspace_subdir: text('Working directory, relative to the workspace; without "..".', { examples: ['src'] }),
    rootfs: text('Directory that becomes the root, with chroot.'),
    chroot: flag('Change the root to rootfs; only with linux_sandbox.'),
    namespaces: part(
      Object.fromEntries(NAMESPACES.map((name) => [name, namespace])),
      'Left out: mount, pid, uts and ipc are unshared, net and cgroup are not.',
    ),
  },
  'How far the task is fenced in.',
)

const policy = part(
  {
    capability_mode: Type.Optional(
      Type.Union([Type.Literal('adaptive'), Type.Literal('strict')], {
        expected: 'adaptive or strict',
        description: 'What the host cannot do: adaptive does without and reports it, strict refuses the task.',
      }),
    ),
  },
  'What happens where the host cannot do all of this.',
)

const name = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, expected: 'string that is not empty', description }))

const controlContext = part(
  {
    control_plane_mode: name('Mode of the caller, in its own words.'),
    tenant: name('Tenant whose quota counts.'),
    owner: name('Owner; only a kill that names it is obeyed.'),
    expected_runtime_profile: name('Profile that the caller expects.'),
    requires_strict_sandbox: flag('Refuse the task rather than do without a part of the sandbox.'),
    requires_resource_reservation: flag('Recorded only: resources are always reserved.'),
    labels: textMap('Labels.', [{ team: 'build' }]),
  },
  'On whose behalf.',
)

const metadata = textMap('Kept with the task by the runtime service.', [{ purpose: 'nightly' }])

/** The parts of a runtime request besides `execution`. */
const REST = { limits, sandbox, policy, control_context: controlContext, metadata }

const ownFields = { command: { program, args, env }, script: { script, interpreter, env } }
const allFields = { program, args, script, interpreter, env }

type RuntimeKind = Extract<ActionKind, `runtime.${string}`>
type ExecutionKind = keyof typeof ownFields
const executionKind = (kind: RuntimeKind): ExecutionKind => (kind === 'runtime.command' ? 'command' : 'script')

/** The field without which there is nothing to run. */
const MAIN_FIELD = { command: 'program', script: 'script' } as const

/** The schema of an action's input, flat or whole. */
function runtimeInput(kind: ExecutionKind): TObject {
  const execution = part(
    { kind: text('Follows from the action; may be left out.', { enum: [kind] }), ...ownFields[kind] },
    `The same fields in one object, as the runtime service takes them; instead of ${MAIN_FIELD[kind]} and the others beside it.`,
  )
  return Type.Object({ ...ownFields[kind], execution, ...REST })
}

export const runtimeCommandInput = runtimeInput('command')
export const runtimeScriptInput = runtimeInput('script')

/** The whole request that `input`, checked against the schema of `kind`, stands for. Throws 400. */
export function runtimeRequest(kind: RuntimeKind, input: Input): Input {
  const wanted = executionKind(kind)
  const isWhole = input.execution !== undefined
  const at = isWhole ? 'input.execution' : 'input'
  const fields = (input.execution ?? input) as Input
  for (const field of Object.keys(allFields)) {
    if (isWhole && input[field] !== undefined) {
      throw invalidAction(`input.${field} and input.execution exclude each other`)
    }
    if (fields[field] !== undefined && !(field in ownFields[wanted])) {
      const other = wanted === 'command' ? 'runtime.script' : 'runtime.command'
      throw invalidAction(`${at}.${field} does not belong to ${kind} (use ${other})`)
    }
  }
  if (isWhole && fields.kind !== undefined && fields.kind !== wanted) {
    throw invalidAction(`${at}.kind must be "${wanted}" for ${kind}, or left out`)
  }
  const main = MAIN_FIELD[wanted]
  if (fields[main] === undefined || fields[main] === '') throw invalidAction(`${at}.${main} is required for ${kind}`)
  return { execution: { kind: wanted, ...pick(fields, ownFields[wanted]) }, ...pick(input, REST) }
}

const pick = (from: Input, names: object): Input =>
  Object.fromEntries(Object.keys(names).flatMap((key) => (from[key] === undefined ? [] : [[key, from[key]]])))

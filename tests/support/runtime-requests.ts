/** Runtime requests for table tests and property tests. */
import fc from 'fast-check'
import { Refusal } from '../../runtime/refusal.ts'
import type { SubmitTaskRequest } from '../../shared/contract/runtime-request.ts'
import { readRequest, type TaskRequest } from '../../shared/request/validate.ts'

/** The id of a request that has none. */
export const NEW_TASK_ID = '0b8f5c1e-5a3b-4b7e-9a51-1f0f6d1c2e3a'

/** A request that nothing is wrong with, and that asks for nothing but the defaults. */
export const COMMAND: SubmitTaskRequest = { execution: { kind: 'command', program: '/bin/true' } }

/** What a body becomes; a text is sent as it is. */
export const read = (body: unknown): TaskRequest =>
  readRequest(new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)), NEW_TASK_ID)

/** The request of `COMMAND` with other parts. */
export const request = (parts: SubmitTaskRequest = {}): TaskRequest => read({ ...COMMAND, ...parts })

/** What `work` must be refused with. */
export function refusalOf(work: () => unknown): Refusal {
  try {
    work()
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
  throw new Error('it was accepted')
}

const record = <T extends Record<string, fc.Arbitrary<unknown>>>(model: T) => fc.record(model, { requiredKeys: [] })
const some = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: null })
const plain = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((text) => text.replaceAll('\0', ''))
const filled = plain.filter((text) => text.trim() === text && text !== '')
const keys = fc.oneof(fc.constantFrom('__proto__', 'constructor', '0'), filled)
const textMap = fc.dictionary(keys, plain, { maxKeys: 4 })
const amount = fc.integer({ min: 1, max: 1_000_000 })
const flag = some(fc.boolean())

const env = fc.dictionary(
  keys.filter((key) => !key.includes('=')),
  plain,
  { maxKeys: 4 },
)
const execution = fc.oneof(
  record({
    args: some(fc.array(plain, { maxLength: 4 })),
    env: some(env),
    script: some(fc.constantFrom('', ' ')),
  }).chain((rest) => filled.map((program) => ({ ...rest, kind: 'command', program }))),
  record({
    interpreter: some(fc.array(filled, { minLength: 1, maxLength: 3 })),
    env: some(env),
    args: some(fc.constant([])),
  }).chain((rest) => filled.map((script) => ({ ...rest, kind: 'script', script }))),
)

const namespaces = record({ pid: flag, uts: flag, ipc: flag, net: flag, cgroup: flag, user: flag })
/** A sandbox with a network that agrees with its namespaces. */
const withNetwork = (sandbox: object) => {
  const net = (sandbox as { namespaces?: { net?: boolean | null } | null }).namespaces?.net
  const rules = { allow: ['pypi.org:443', '10.0.0.0/8 opaque'], deny: null, max_bytes: 1_000 }
  const own = ['none', {}, rules]
  const networks = net == null ? [...own, 'host'] : net ? own : ['host']
  return fc
    .constantFrom(undefined, null, ...networks)
    .map((network) => ({ ...sandbox, ...(network !== undefined && { network }) }))
}
const subdir = fc.constantFrom('a', 'a/b', './a', 'a..b/...', 'ü', '')
const sandbox = fc.oneof(
  record({ profile: some(fc.constant('process')), workspace_subdir: some(subdir), namespaces: some(namespaces) }),
  record({ workspace_subdir: some(subdir), namespaces: some(namespaces) })
    .map((rest) => ({
      ...rest,
      profile: 'linux_sandbox',
    }))
    .chain(withNetwork),
  record({ namespaces: some(namespaces) })
    .map((rest) => ({
      ...rest,
      profile: 'linux_sandbox',
      chroot: true,
      rootfs: '/srv/root',
    }))
    .chain(withNetwork),
)

/** A body that nothing is wrong with, written in odd ways. */
export const randomRequest: fc.Arbitrary<Record<string, unknown>> = record({
  task_id: some(fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/)),
  limits: some(
    record({
      wall_time_ms: some(amount),
      cpu_time_sec: some(amount),
      memory_bytes: some(amount),
      pids_max: some(amount),
      stdout_max_bytes: some(amount),
      stderr_max_bytes: some(amount),
      x_more: fc.jsonValue(),
    }),
  ),
  sandbox: some(sandbox),
  policy: some(record({ capability_mode: some(fc.constantFrom('adaptive', 'strict')) })),
  control_context: some(
    record({
      control_plane_mode: some(filled),
      tenant: some(filled),
      owner: some(fc.constantFrom('ci', 'team a', 'josé')),
      expected_runtime_profile: some(filled),
      requires_strict_sandbox: flag,
      requires_resource_reservation: flag,
      labels: some(fc.dictionary(keys, filled, { maxKeys: 4 })),
    }),
  ),
  metadata: some(textMap),
  'x-more': fc.jsonValue(),
  annotations: fc.jsonValue(),
}).chain((rest) => execution.map((execution) => ({ ...rest, execution })))

/**
 * Validates a body and fills in the defaults, or throws `RequestFault`. Pure.
 *
 * Both services apply these rules: the runtime service refuses a faulty request, control warns its caller of the refusal.
 * The order of the checks, each of which covers its whole part before the next begins:
 *  1. the body is JSON (`decode.ts`), 2. every field has its JSON type and a known name (`decode.ts`),
 *  3. task_id, 4. execution, 5. secrets, 6. inputs, 7. outputs, 8. priority, 9. limits, 10. sandbox, 11. policy,
 *  12. control_context, 13. metadata.
 * The first of several faults is named, in that order. The result is a valid body with the same result, so stored requests
 * pass the same rules again. Whether the host can run it, only the runtime service knows (`runtime/plan/plan.ts`).
 */
import {
  CAPABILITY_MODES,
  type CapabilityMode,
  type ControlContext,
  type SubmitTaskRequest,
  type TaskPolicy,
} from '../contract/runtime-request.ts'
import { MAX_PRIORITY, MIN_PRIORITY, priorityExpected } from '../contract/start-order.ts'
import { decodeRequest, decodeValue } from './decode.ts'
import { type Execution, validExecution } from './execution.ts'
import { requestFault } from './fault.ts'
import { MAX_INPUTS, type TaskInputs, validInputs } from './inputs.ts'
import { type Limits, validLimits } from './limits.ts'
import { type RequestedSandbox, validSandbox } from './sandbox.ts'
import { type SecretNames, validSecrets } from './secrets.ts'
import { checkText, checkTextMap, isBlank, shortened } from './text.ts'
import type { UnknownFields } from './unknown-names.ts'

/** An id becomes the name of a directory. */
export const MAX_TASK_ID_CHARACTERS = 128

/** A request that passed all checks. */
export interface TaskRequest {
  readonly task_id: string
  readonly execution: Execution
  /** Absent without any. */
  readonly secrets?: SecretNames
  /** Absent without any. */
  readonly inputs?: TaskInputs
  /** Absent if all files are kept. */
  readonly outputs?: readonly string[]
  /** Absent: 0. */
  readonly priority?: number
  readonly limits: Limits
  readonly sandbox: RequestedSandbox
  /** Default: the mode of the service. */
  readonly policy: { readonly capability_mode?: CapabilityMode }
  readonly control_context: ControlContext
  readonly metadata: Readonly<Record<string, string>>
}

/** The request in a body. `newTaskId` is its id if it has none. Throws `RequestFault`. */
export const readRequest = (
  body: Uint8Array,
  newTaskId: string,
  unknownFields: UnknownFields = 'refuse',
): TaskRequest => validateRequest(decodeRequest(body, unknownFields), newTaskId)

/** The same for a parsed body. */
export const validRequest = (value: unknown, newTaskId: string, unknownFields: UnknownFields): TaskRequest =>
  validateRequest(decodeValue(value, unknownFields), newTaskId)

function validateRequest(given: SubmitTaskRequest, newTaskId: string): TaskRequest {
  const task_id = validTaskId(given.task_id ?? newTaskId)
  const execution = validExecution(given.execution)
  return {
    ...{ task_id, execution },
    ...(given.secrets !== undefined && {
      secrets: validSecrets(given.secrets, {
        env: execution.env,
        workspaceSubdir: given.sandbox?.workspace_subdir,
        inputPaths: Object.keys(given.inputs ?? {}).slice(0, MAX_INPUTS), // more are refused below
      }),
    }),
    ...(given.inputs !== undefined && { inputs: validInputs(given.inputs, task_id, isTaskId) }),
    ...(given.outputs !== undefined && { outputs: validOutputs(given.outputs) }),
    ...(given.priority !== undefined && { priority: validPriority(given.priority) }),
    limits: validLimits(given.limits),
    sandbox: validSandbox(given.sandbox),
    policy: validPolicy(given.policy),
    control_context: validControlContext(given.control_context),
    metadata: validMetadata(given.metadata),
  }
}

/** Whether a task may have this id. */
export const isTaskId = (id: string): boolean =>
  /^[A-Za-z0-9._-]+$/.test(id) && id.length <= MAX_TASK_ID_CHARACTERS && id !== '.' && id !== '..'

function validTaskId(id: string): string {
  if (id === '') throw requestFault('task_id cannot be empty (leave it out to have one made)')
  if (!/^[A-Za-z0-9._-]*$/.test(id)) {
    throw requestFault('task_id may only contain letters, digits, "-", "_" and "."')
  }
  if (id.length > MAX_TASK_ID_CHARACTERS) {
    throw requestFault(`task_id has ${id.length} characters (at most ${MAX_TASK_ID_CHARACTERS})`)
  }
  if (id === '.' || id === '..') throw requestFault('task_id cannot be "." or ".."')
  return id
}

function validPriority(given: number): number {
  if (Number.isInteger(given) && given >= MIN_PRIORITY && given <= MAX_PRIORITY) return given
  throw requestFault(`priority must be an ${priorityExpected}`)
}

/** Patterns of one task, and characters of each and of all together. */
const MAX_OUTPUTS = 64
const MAX_PATTERN_CHARACTERS = 1_024
const MAX_PATTERNS_CHARACTERS = 4_096

function validOutputs(given: readonly string[]): readonly string[] {
  if (given.length > MAX_OUTPUTS) throw requestFault(`outputs has ${given.length} entries (at most ${MAX_OUTPUTS})`)
  let characters = 0
  for (const [i, pattern] of given.entries()) {
    const path = `outputs[${i}]`
    checkText(path, pattern)
    if (pattern.length > MAX_PATTERN_CHARACTERS) {
      throw requestFault(`${path} has ${pattern.length} characters (at most ${MAX_PATTERN_CHARACTERS})`)
    }
    if (pattern.split('/').some((name) => ['', '.', '..'].includes(name))) {
      throw requestFault(`${path} must be a path below the workspace, such as dist/**, got ${shortened(pattern)}`)
    }
    characters += pattern.length
  }
  if (characters <= MAX_PATTERNS_CHARACTERS) return given
  throw requestFault(
    `outputs has ${characters} characters (at most ${MAX_PATTERNS_CHARACTERS} in all patterns together)`,
  )
}

function validPolicy(given: TaskPolicy = {}): TaskRequest['policy'] {
  const { capability_mode } = given
  if (capability_mode === undefined) return {}
  if (!CAPABILITY_MODES.includes(capability_mode)) {
    throw requestFault(`policy.capability_mode must be ${CAPABILITY_MODES.join(' or ')}`)
  }
  return { capability_mode }
}

/** Characters of a tenant, an owner and the like. */
export const MAX_NAME_CHARACTERS = 256

const NAMES = ['control_plane_mode', 'tenant', 'owner', 'expected_runtime_profile'] as const

/** On whose behalf a task is run: kept with it, and for tenant and owner obeyed. Nothing here is a credential. */
function validControlContext(given: ControlContext = {}): ControlContext {
  const { labels = {}, owner, tenant, tenant_only } = given
  if (Object.keys(labels).some(isBlank)) throw requestFault('control_context.labels keys cannot be empty')
  const values = [...NAMES.flatMap((name) => given[name] ?? []), ...Object.values(labels)]
  if (values.some(isBlank)) throw requestFault('control_context values cannot be empty strings')
  for (const name of NAMES) {
    const length = given[name]?.length ?? 0
    if (length > MAX_NAME_CHARACTERS) {
      throw requestFault(`control_context.${name} has ${length} characters (at most ${MAX_NAME_CHARACTERS})`)
    }
  }
  if (tenant_only === true && tenant === undefined)
    throw requestFault('control_context.tenant_only needs control_context.tenant')
  if (owner !== undefined && !canBeSent(owner)) {
    throw requestFault(
      'control_context.owner cannot begin or end with a space or contain control characters: no kill could name it in a header',
    )
  }
  checkTextMap('control_context.labels', labels)
  return given
}

/** Whether a header can have this value: an owner that cannot be named makes a task that cannot be killed. */
const canBeSent = (owner: string): boolean => owner === owner.trim() && !/\p{Cc}/u.test(owner)

function validMetadata(given: Readonly<Record<string, string>> = {}): Readonly<Record<string, string>> {
  checkTextMap('metadata', given)
  return given
}

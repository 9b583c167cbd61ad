/**
 * Builds the request to the runtime service from the input of a task. Pure.
 *
 * The input is a whole request, or flat: the fields of `execution` at the top level. The rules of the runtime service
 * check the values (`request-review.ts`). Only rules that it cannot know are here.
 */
import {
  EXECUTION_KINDS,
  type ExecutionKind,
  MAX_WALL_TIME_MS,
  SubmitTaskRequest,
} from '../../../shared/contract/runtime-request.ts'
import type { TraceHeaders } from '../../../shared/logs/trace.ts'
import type { TaskFiles } from '../../../shared/request/inputs.ts'
import { type SecretNames, sortedNames } from '../../../shared/request/secrets.ts'
import { shortened } from '../../../shared/request/text.ts'
import { withoutUnknownFields } from '../../../shared/request/unknown-names.ts'
import { isGiven, isObject } from '../../../shared/text/json.ts'
import { listedInputs } from '../../rules/file-values.ts'
import { hasPlaceholderName } from '../../rules/placeholders.ts'
import { type PlacementRule, placementFault, placementRule } from '../../rules/placement.ts'
import { ATTEMPT_VARIABLE, traceVariables } from '../command.ts'
import { type ExecutableTask, invalidInput } from '../executor.ts'

/**
 * Milliseconds between the timeout of a task in control and its wall time limit in the runtime service, which applies
 * if control cannot kill the task.
 */
const WALL_TIME_BEYOND_TIMEOUT_MS = 10_000

/** Defaults for `control_context`. */
export interface ContextDefaults {
  readonly tenant: string | undefined
  readonly owner: string | undefined
}

export interface RuntimeRequest {
  readonly body: Fields
  /** The owner, who may kill the task. */
  readonly owner: string | undefined
  /** Where it may run. */
  readonly placement: PlacementRule
  /** Its inputs from other tasks, and where their files are; undefined for those on the runtime service without a name. */
  readonly inputPlaces: readonly InputPlace[]
}

export interface InputPlace extends TaskFiles {
  readonly path: string
  readonly runtime: string | undefined
}

type Fields = Readonly<Record<string, unknown>>

/** The fields of `execution`, which a flat input has at the top level. */
const EXECUTION_FIELDS = ['program', 'args', 'script', 'interpreter', 'env', 'stdin'] as const

export interface RequestOptions {
  /** Id of the task in the runtime service. */
  readonly runtimeId: string
  readonly defaults: ContextDefaults
  /** Number of the attempt, for its processes. Absent where nothing is to run. */
  readonly attempt?: number
  /** Of the graph. It counts, whatever the input says. */
  readonly tenant?: string | undefined
  /** The trace of the attempt, for its processes. */
  readonly trace?: TraceHeaders | undefined
}

/** Throws `invalid_input`. */
export function runtimeRequest(
  task: Pick<ExecutableTask, 'toolName' | 'input' | 'timeout' | 'priority' | 'secrets'>,
  { runtimeId, defaults, tenant, attempt, trace }: RequestOptions,
): RuntimeRequest {
  const { task_id: _, ...input } = fieldsOf(task.input, 'params')
  const { execution: given, ...rest } = input
  const flat = Object.fromEntries(EXECUTION_FIELDS.flatMap((key) => (isGiven(rest[key]) ? [[key, rest[key]]] : [])))
  if (isGiven(given) && Object.keys(flat).length > 0) {
    throw invalidInput(`parse runtime params: ${Object.keys(flat)[0]} and execution exclude each other`)
  }
  const execution = isGiven(given) ? fieldsOf(given, 'execution') : flat
  if (!isGiven(given)) for (const key of EXECUTION_FIELDS) delete (rest as Record<string, unknown>)[key]
  const limits = limitsOf(rest.limits, task.timeout)
  const secrets = secretsOf(rest.secrets, task.secrets)
  const { inputs, inputPlaces } = inputsOf(rest.inputs)
  if (tenant !== undefined) refuseStaged(inputs)
  const context = contextOf(rest.control_context, defaults, tenant)
  const { owner } = (context ?? {}) as Fields
  const variables = {
    ...(attempt !== undefined && { [ATTEMPT_VARIABLE]: `${runtimeId}/${attempt}` }),
    ...traceVariables(trace, execution.env, secrets),
  }
  const request = {
    ...(task.priority && { priority: task.priority }),
    ...rest,
    task_id: runtimeId,
    execution: {
      ...withVariables(execution, secrets, variables),
      ...(isGiven(execution.stdin) && { stdin: contentText(execution.stdin) }),
      kind: kindOf(task.toolName, execution),
    },
    ...(inputs !== undefined && { inputs }),
    ...(limits !== undefined && { limits }),
    ...(secrets !== undefined && { secrets }),
    ...(context !== undefined && { control_context: context }),
  }
  const fault = placementFault(rest.placement)
  if (fault !== undefined) throw invalidInput(fault)
  return {
    placement: placementRule(rest.placement),
    inputPlaces,
    // Submissions with unknown fields are refused at our door. A task that an earlier version took in runs as it did there.
    body: withoutUnknownFields(SubmitTaskRequest, request) as Fields,
    owner: typeof owner === 'string' ? owner : undefined,
  }
}

/** The tenant that `input` gives literally; undefined if there is none, or a placeholder stands for it. */
export function tenantIn(input: unknown): string | undefined {
  const context = isObject(input) ? input.control_context : undefined
  const tenant = isObject(context) ? context.tenant : undefined
  return typeof tenant === 'string' ? tenant : undefined
}

/** The owner to kill a task as; undefined for an invalid input. */
export function ownerOf({ input }: ExecutableTask, defaults: ContextDefaults): string | undefined {
  const context = isObject(input) ? contextOf(input.control_context, defaults) : undefined
  const { owner } = isObject(context) ? context : {}
  return typeof owner === 'string' ? owner : undefined
}

/**
 * Tenant, owner and secrets in `input`, as a text; undefined if a placeholder or an invalid value stands for them. Secrets
 * beside the parameters are not in it.
 */
export function onBehalfOf(input: unknown, defaults: ContextDefaults): string | undefined {
  if (!isGiven(input)) return onBehalfOf({}, defaults)
  if (!isObject(input) || hasPlaceholderName(input)) return undefined
  const context = contextOf(input.control_context, defaults) ?? {}
  if (!isObject(context) || hasPlaceholderName(context)) return undefined
  const { tenant = null, owner = null } = context
  const { secrets } = input
  const isKnown = [tenant, owner].every((name) => name === null || typeof name === 'string')
  if (!isKnown || (isGiven(secrets) && !isObject(secrets))) return undefined
  return JSON.stringify([tenant, owner, sortedNames(secrets as SecretNames | undefined)])
}

/**
 * Names the attempt and its trace in the environment, but for variables that the caller has given a value. The last part of
 * the name of the attempt is its number, as it is for local commands.
 */
function withVariables(execution: Fields, secrets: unknown, variables: Readonly<Record<string, string>>): Fields {
  const env = execution.env ?? {}
  if (!isObject(env)) return execution
  const isGivenIn = (names: unknown, name: string) => isObject(names) && Object.hasOwn(names, name)
  const added = Object.entries(variables).filter(([name]) => ![env, secrets].some((names) => isGivenIn(names, name)))
  return added.length === 0 ? execution : { ...execution, env: { ...env, ...Object.fromEntries(added) } }
}

function kindOf(toolName: string | undefined, execution: Fields): unknown {
  if (!toolName) {
    if (isGiven(execution.kind)) return execution.kind
    return isGiven(execution.script) && !isGiven(execution.program) ? 'script' : 'command'
  }
  if (!EXECUTION_KINDS.includes(toolName as ExecutionKind)) {
    throw invalidInput(`unknown runtime tool "${toolName}" (available: ${EXECUTION_KINDS.join(', ')})`)
  }
  if (isGiven(execution.kind) && execution.kind !== toolName) {
    const kind = JSON.stringify(execution.kind)
    throw invalidInput(`execution.kind ${kind} contradicts the tool runtime.${toolName}: leave it out`)
  }
  return toolName
}

/** The wall time limit follows the timeout, because the default of the runtime service may be shorter. */
function limitsOf(given: unknown, timeout: number | undefined): unknown {
  const limits = isGiven(given) ? given : {}
  if (timeout === undefined || timeout <= 0 || !isObject(limits) || isGiven(limits.wall_time_ms)) {
    return isGiven(given) ? given : undefined
  }
  return { ...limits, wall_time_ms: Math.min(timeout + WALL_TIME_BEYOND_TIMEOUT_MS, MAX_WALL_TIME_MS) }
}

/** The runtime service takes texts. */
const contentText = (content: unknown): string => (typeof content === 'string' ? content : JSON.stringify(content))

/** The given content in `body` that has most bytes: its field, and the bytes. Undefined if there is none. */
export function largestContent({
  execution,
  inputs,
}: Fields): { readonly at: string; readonly bytes: number } | undefined {
  const contents: [string, unknown][] = [['stdin', (execution as Fields).stdin]]
  for (const [path, input] of Object.entries(isObject(inputs) ? inputs : {})) {
    if (isObject(input)) contents.push([`inputs.${shortened(path)}.content`, input.content])
  }
  const sizes = contents.flatMap(([at, text]) =>
    typeof text === 'string' ? [{ at, bytes: Buffer.byteLength(text) }] : [],
  )
  return sizes.toSorted((a, b) => b.bytes - a.bytes)[0]
}

/** The inputs without lists, with texts as contents, and without the names of their runtime services, which are for control. */
function inputsOf(given: unknown): { inputs: unknown; inputPlaces: RuntimeRequest['inputPlaces'] } {
  if (!isObject(given)) return { inputs: given, inputPlaces: [] }
  const places: InputPlace[] = []
  const inputs = new Map<string, unknown>()
  const entries = Object.entries(given).flatMap(([path, input]) => listedInputs(path, input))
  for (const [path, input] of entries) {
    const { runtime, ...source } = isObject(input) ? input : {}
    const isNamed = typeof runtime === 'string'
    const { task_id, file } = source as Partial<TaskFiles>
    if (typeof task_id === 'string' && typeof file === 'string') {
      places.push({ path, task_id, file, runtime: isNamed ? runtime : undefined })
    }
    const hasContent = isObject(input) && Object.hasOwn(input, 'content')
    const given = isNamed ? source : input
    if (inputs.has(path)) throw invalidInput(`inputs.${shortened(path)} is there twice: a list of inputs has it, too`)
    inputs.set(path, hasContent ? { ...(given as Fields), content: contentText(input.content) } : given)
  }
  return { inputs: Object.fromEntries(inputs), inputPlaces: places }
}

/** A hash would name files of any tenant. */
function refuseStaged(inputs: unknown): void {
  for (const [path, input] of Object.entries(isObject(inputs) ? inputs : {}))
    if (isObject(input) && isGiven(input.staged))
      throw invalidInput(`inputs.${shortened(path)}.staged: a task of a tenant names files by task_id and file`)
}

/** Secrets are named beside the parameters, or in them as the runtime service has them. */
function secretsOf(given: unknown, named: SecretNames | undefined): unknown {
  if (named === undefined || (isGiven(given) && !isObject(given))) return isGiven(given) ? given : undefined
  const both = Object.keys(named).find((variable) => isObject(given) && Object.hasOwn(given, variable))
  if (both === undefined) return { ...(given as Fields | undefined), ...named }
  throw invalidInput(`secrets.${shortened(both)} is a variable of secrets of its parameters, too`)
}

function contextOf(given: unknown, { tenant, owner }: ContextDefaults, ofToken?: string): unknown {
  if (isGiven(given) && !isObject(given)) return given
  const context: Fields = isObject(given) ? given : {}
  const added = {
    ...(tenant !== undefined && !isGiven(context.tenant) && { tenant }),
    ...(owner !== undefined && !isGiven(context.owner) && { owner }),
    ...(ofToken !== undefined && { tenant: ofToken, tenant_only: true }),
  }
  return isGiven(given) || Object.keys(added).length > 0 ? { ...context, ...added } : undefined
}

function fieldsOf(value: unknown, what: string): Fields {
  if (isObject(value)) return value
  if (!isGiven(value) && what === 'params') return {}
  throw invalidInput(`parse runtime params: ${what === 'params' ? '' : `${what}: `}expected object`)
}

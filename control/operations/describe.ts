/** Describes the service: kinds of actions, types of tasks, skills and MCP servers. */
import {
  ACTION_KINDS,
  type ActionKind,
  type AdapterCapabilities,
  type AdapterTools,
} from '../../shared/contract/adapter-v1.ts'
import { badRequest } from '../../shared/contract/errors.ts'
import type { RuntimeLabels } from '../../shared/contract/runtime-names.ts'
import { publicSchema } from '../../shared/http/openapi/public-schema.ts'
import { KINDS, type Kind, resolveKind } from '../adapter-v1/kinds.ts'
import { capabilities, toolManifest } from '../adapter-v1/manifest.ts'
import { actionInputs } from './action-inputs.ts'
import type { OperationParts } from './parts.ts'

/** Maximum number of listed skills. A model reads the whole list. */
const MAX_NAMED_SKILLS = 200

export interface DescribedKind extends Kind {
  readonly kind: ActionKind
  /** JSON Schema of the input. Only if the caller asked for this kind. */
  readonly inputSchema?: object
}

export interface ServiceDescription {
  /** Why the service would refuse a graph now; undefined if it would accept one. */
  readonly notReady: string | undefined
  readonly taskTypes: readonly string[]
  readonly kinds: readonly DescribedKind[]
  readonly skills: readonly string[]
  readonly mcpServers: readonly string[]
  readonly runtimes: readonly DescribedRuntime[]
}

/** Where runtime tasks may run. */
export interface DescribedRuntime {
  readonly name: string
  readonly labels: RuntimeLabels
  readonly draining: boolean
}

/** Values that the contract fixes for every service. */
export const describeAdapter = (): AdapterCapabilities => capabilities

/** Kinds of actions and skills in the form of tools for a model. */
export const describeTools = async ({ listSkills }: OperationParts): Promise<AdapterTools> =>
  toolManifest(actionInputs, await listSkills())

/** All kinds that this service can execute, or only the kind with the name or alias `asked`. Throws 400. */
export async function describeService(
  { executors, mcpServers, readiness, listSkills, runtimePool }: OperationParts,
  asked: string | undefined,
): Promise<ServiceDescription> {
  const kinds = asked === undefined ? executableKinds(executors.types) : [describedKind(kindCalled(asked))]
  return {
    notReady: readiness.fault(),
    taskTypes: [...executors.types].sort(),
    kinds,
    skills: (await listSkills()).slice(0, MAX_NAMED_SKILLS).map(({ name }) => name),
    mcpServers: mcpServers.names,
    runtimes: runtimePool.members.map(({ name, labels, isDraining }) => ({ name, labels, draining: isDraining })),
  }
}

function kindCalled(name: string): ActionKind {
  const kind = resolveKind(name)?.kind
  if (kind !== undefined) return kind
  throw badRequest(`unknown action kind ${JSON.stringify(name)} (available: ${ACTION_KINDS.join(', ')})`)
}

const describedKind = (kind: ActionKind): DescribedKind => ({
  kind,
  ...KINDS[kind],
  inputSchema: publicSchema(actionInputs[kind]),
})

const executableKinds = (types: ReadonlySet<string>): DescribedKind[] =>
  ACTION_KINDS.map((kind) => ({ kind, ...KINDS[kind] })).filter(
    ({ category }) => category === 'task_graph' || types.has(category),
  )

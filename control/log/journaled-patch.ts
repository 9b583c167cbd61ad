/** What a caller, or a dynamic task, changed of a live graph, as a frame of the journal. Pure. */
import type { TaskInput } from '../../shared/contract/submission.ts'
import type { Steps } from '../../shared/process/steps.ts'
import { parseJson } from '../../shared/text/json-bytes.ts'
import { jsonText } from '../json/pieces.ts'
import type { Graph } from '../task/graph.ts'
import type { GraphPatches } from '../task/graph-patches.ts'
import type { KeptKey } from './idempotency.ts'

/** The payload of a frame of kind `m`. */
export interface JournaledPatch {
  readonly graph_ordinal: number
  readonly patched: GraphPatches
  /** Number of the change, and of the first state of each of `tasks`. */
  readonly seq: number
  /** Milliseconds since 1970. */
  readonly at: number
  /** Name of the token. Absent for that of the service. */
  readonly by?: string | undefined
  /** The dynamic task that added the tasks. */
  readonly task_id?: string | undefined
  /** Ids of tasks that the graph has no longer. */
  readonly remove: readonly string[]
  /** Ids of those of `tasks` that take the place of a task with the same id. */
  readonly replaced: readonly string[]
  /** The key that was sent with the patch, and its answer. */
  readonly idempotency?: KeptKey | undefined
  /** New definitions, in order. */
  readonly tasks: readonly TaskInput[]
  /** What changed with the patch, as in a frame of kind `t`: the end of the dynamic task. */
  readonly states?: unknown
}

/** What a patch is kept with, beside its graph and its encoded tasks. */
export type PatchToKeep = Omit<JournaledPatch, 'graph_ordinal' | 'tasks'>

/** The end of a payload: the new definitions, which may have megabytes. */
export const encodePatchedTasks = (tasks: readonly TaskInput[]): Steps<string> => jsonText(tasks)

/** The payload of a patch whose `tasks` are encoded already. */
export const encodePatch = ({ ordinal }: Graph, patch: PatchToKeep, tasks: string): string[] => [
  `${JSON.stringify({ graph_ordinal: ordinal, ...patch }).slice(0, -1)},"tasks":`,
  tasks,
  '}',
]

/** The payload of a patch with the payload of a frame of kind `t`. */
export const withStates = (patch: readonly string[], states: string): string[] => [
  ...patch.slice(0, -1),
  ',"states":',
  states,
  '}',
]

/** Throws `JsonSyntaxError`. */
export const decodePatch = (payload: Uint8Array): JournaledPatch => parseJson(payload) as JournaledPatch

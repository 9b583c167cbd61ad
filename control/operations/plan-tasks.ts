/** Asks executors for the plans of delegated tasks. Limits concurrent requests and the total time. */

import { messageOf } from '../../shared/contract/errors.ts'
import { MAX_DRY_RUN_PLANS, type TaskPlan } from '../../shared/contract/graph-dry-run.ts'
import type { Caller } from '../../shared/http/callers.ts'
import type { ExecutorRegistry } from '../executors/registry.ts'
import { withoutInputs } from '../rules/file-references.ts'
import { normalizeTool } from '../rules/normalize.ts'
import type { KnownInput, KnownInputs } from '../rules/placeholder-review.ts'
import type { ValidTask } from '../rules/validate.ts'

/** Maximum concurrent requests. The remote service also has other callers. */
const MAX_CONCURRENT_PLANS = 8

/** Milliseconds for all plans together. The answer must be ready before the connection times out. */
const PLANNING_MS = 10_000

export interface Plans {
  readonly byTask: Readonly<Record<string, TaskPlan>>
  /** Whether there are more tasks than plans. */
  readonly isTruncated: boolean
}

interface PlanCall {
  readonly traceId: string
  readonly signal: AbortSignal
}

export async function planTasks(
  executors: ExecutorRegistry,
  { tasks, known }: { readonly tasks: readonly ValidTask[]; readonly known: KnownInputs },
  { traceId, signal, by }: PlanCall & { readonly by?: Caller | undefined },
): Promise<Plans> {
  const delegated = tasks.filter((task) => executors.get(typeOf(task))?.plan !== undefined)
  const planned = delegated.slice(0, MAX_DRY_RUN_PLANS)
  const inTime = AbortSignal.timeout(PLANNING_MS)
  const ending = AbortSignal.any([inTime, signal])
  const plans: [string, TaskPlan][] = []
  const next = planned.entries()
  const ask = async () => {
    for (const [i, task] of next)
      plans[i] = [
        task.id,
        await planOf(executors, task, known.get(task), { traceId, signal: ending, tenant: by?.grant.tenant }),
      ]
  }
  await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT_PLANS, planned.length) }, ask))
  return { byTask: Object.fromEntries(plans), isTruncated: delegated.length > planned.length }
}

const typeOf = ({ type, tool_name }: ValidTask): string => normalizeTool(type, tool_name ?? undefined).type

async function planOf(
  executors: ExecutorRegistry,
  task: ValidTask,
  known: KnownInput | undefined,
  call: PlanCall & { readonly tenant: string | undefined },
): Promise<TaskPlan> {
  const { type, toolName } = normalizeTool(task.type, task.tool_name ?? undefined)
  const { input: whole, isWhole, hasFiles } = known ?? { input: task.input ?? task.params ?? undefined, isWhole: true }
  const input = hasFiles ? withoutInputs(whole) : whole
  if (!isWhole) return NOT_KNOWN_YET
  if (call.signal.aborted) return NO_ANSWER
  try {
    const { timeout, secrets } = task
    const asked = { toolName, input, timeout: timeout ?? undefined, secrets: secrets ?? undefined }
    return await executors.get(type)!.plan!(asked, call)
  } catch (error) {
    return call.signal.aborted ? NO_ANSWER : { error: messageOf(error) }
  }
}

/** The values of placeholders are unknown, so there is no plan. */
const NOT_KNOWN_YET: TaskPlan = { error: 'its parameters have values of other tasks, which are not known yet' }

const NO_ANSWER: TaskPlan = { error: `no answer within ${PLANNING_MS / 1000} s` }

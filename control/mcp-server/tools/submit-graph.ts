/** `submit_graph`: submits a graph of tasks, as POST /tasks does. */

import type { GraphDryRun } from '../../../shared/contract/graph-dry-run.ts'
import { SubmitGraphAnswer } from '../../../shared/contract/mcp-answers.ts'
import { SubmitGraphInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { dryRun } from '../../operations/dry-run.ts'
import { submit } from '../../operations/submit.ts'
import { waitForTasks } from '../../operations/wait.ts'
import { waitElsewhere } from '../../operations/wait-elsewhere.ts'
import { briefWait } from '../brief.ts'
import { defineTool, originIn } from '../tool.ts'
import { firstIds, ResultRoom, waitAnswer } from '../view.ts'

export const submitGraphTool = defineTool({
  name: 'submit_graph',
  title: 'Submit a graph of tasks',
  description:
    'Submit tasks that depend on each other. A task runs as soon as all tasks in its depends_on have succeeded. Independent tasks run at the same time. When a task fails, the tasks that depend on it are skipped. Use run_action for a single step.',
  right: 'submit',
  input: SubmitGraphInput,
  answer: SubmitGraphAnswer,
  brief: briefWait,
  async run({ wait_ms = 0, dry_run = false, idempotency_key, ...graph }, parts, context): Promise<SubmitGraphAnswer> {
    if (dry_run) return dryRunView(await dryRun(parts, { graph }, context))
    const given = await submit(parts, { graph }, { ...originIn(context), key: idempotency_key })
    const { accepted, task_ids, graph_id, warnings } = given.response()
    const isScoped = graph.scope === 'graph' || context.by?.grant.tenant !== undefined
    const addresses = task_ids.slice(0, MAX_SHOWN_TASKS).map((id) => (isScoped ? `${graph_id}/${id}` : id))
    const submitted = {
      ...{ accepted, task_ids: addresses, graph_id },
      ...(warnings !== undefined && { warnings: [...warnings] }),
    }
    if (wait_ms === 0) return submitted
    const elsewhere = await waitElsewhere(parts, graph_id, wait_ms, context) // repeated, and accepted there
    if (elsewhere !== undefined) return { ...submitted, ...elsewhere.waited }
    const options = { until: 'all', timeoutMs: wait_ms } as const
    return waitForTasks(parts, { tasks: given.tasks() }, options, context, (...waited) => ({
      ...submitted,
      ...waitAnswer(...waited),
    }))
  },
})

function dryRunView({ valid, errors, warnings, waves, critical_path, ...more }: GraphDryRun): SubmitGraphAnswer {
  const room = new ResultRoom()
  const plans = Object.entries(more.runtime)
  const shown = {
    errors: errors.slice(0, MAX_SHOWN_TASKS),
    waves: firstIds(waves),
    critical_path: critical_path.slice(0, MAX_SHOWN_TASKS),
    runtime: Object.fromEntries(plans.filter(([, plan]) => room.takes(plan))),
  }
  const isTruncated =
    more.truncated ||
    shown.errors.length < errors.length ||
    shown.critical_path.length < critical_path.length ||
    shown.waves.length < waves.length ||
    shown.waves.at(-1)?.length !== waves.at(-1)?.length ||
    Object.keys(shown.runtime).length < plans.length
  return {
    valid,
    ...shown,
    ...(warnings.length > 0 && { warnings: [...warnings] }),
    ...(isTruncated && { truncated: true }),
  }
}

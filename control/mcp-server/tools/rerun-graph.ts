/** `rerun_graph`: runs a graph again, as POST /graphs/{id}/rerun does. */

import { RerunGraphAnswer } from '../../../shared/contract/mcp-answers.ts'
import { RerunGraphInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import type { RerunResponse } from '../../../shared/contract/rerun.ts'
import { rerun } from '../../operations/rerun.ts'
import { waitForTasks } from '../../operations/wait.ts'
import { waitElsewhere } from '../../operations/wait-elsewhere.ts'
import type { TaskStore } from '../../task/task-store.ts'
import { briefWait } from '../brief.ts'
import { defineTool, originIn } from '../tool.ts'
import { waitAnswer } from '../view.ts'

export const rerunGraphTool = defineTool({
  name: 'rerun_graph',
  title: 'Run a graph again',
  description:
    'Run a graph again that has ended, as a new graph: after a failure, or with from to repeat some tasks. Tasks that succeeded keep their results and are not executed; the rest and everything downstream is.',
  right: 'submit',
  input: RerunGraphInput,
  answer: RerunGraphAnswer,
  brief: briefWait,
  async run(
    { graph_id: source, from, params, wait_ms = 0, idempotency_key },
    parts,
    context,
  ): Promise<RerunGraphAnswer> {
    const ids = from && idsIn(parts.store, source, from)
    const body = new TextEncoder().encode(JSON.stringify({ from: ids, params }))
    const answer = await rerun(parts, source, body, { ...originIn(context), key: idempotency_key })
    const { accepted, task_ids, graph_id, reused, warnings } = JSON.parse(answer) as RerunResponse
    const elsewhere = await waitElsewhere(parts, graph_id, wait_ms, context) // a repeated call may name one of another replica,
    const graph = parts.store.graph(graph_id) // or one that is gone
    const isScoped = elsewhere?.is_scoped ?? graph?.isScoped === true
    const shown = (ids: readonly string[]) =>
      ids.slice(0, MAX_SHOWN_TASKS).map((id) => (isScoped ? `${graph_id}/${id}` : id))
    const submitted = {
      ...{ accepted, task_ids: shown(task_ids), graph_id, reused: shown(reused) },
      ...(warnings !== undefined && { warnings: [...warnings] }),
    }
    if (wait_ms === 0) return submitted
    if (elsewhere !== undefined) return { ...submitted, ...elsewhere.waited }
    const tasks = graph === undefined ? [] : task_ids.flatMap((id) => parts.store.taskIn(graph, id) ?? [])
    const options = { until: 'all', timeoutMs: wait_ms } as const
    return waitForTasks(parts, { tasks }, options, context, (...waited) => ({ ...submitted, ...waitAnswer(...waited) }))
  },
})

/** The ids in the graph of what a call names: an id in the graph, else `graph_id/task_id`. */
function idsIn(store: Pick<TaskStore, 'graph' | 'taskIn'>, graphId: string, names: readonly string[]): string[] {
  const graph = store.graph(graphId)
  const prefix = `${graphId}/`
  const isOther = (name: string) => graph === undefined || store.taskIn(graph, name) === undefined
  return names.map((name) => (name.startsWith(prefix) && isOther(name) ? name.slice(prefix.length) : name))
}

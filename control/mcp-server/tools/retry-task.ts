/** `retry_task`: runs failed tasks again in their graph, as POST /tasks/{id}/retry and POST /graphs/{id}/retry do. */
import { badRequest } from '../../../shared/contract/errors.ts'
import { RetryTaskAnswer } from '../../../shared/contract/mcp-answers.ts'
import { RetryTaskInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import type { RetryResponse } from '../../../shared/contract/retry.ts'
import { addressOf } from '../../operations/named-tasks.ts'
import { retryGraph, retryTask } from '../../operations/retry.ts'
import { defineTool } from '../tool.ts'

export const retryTaskTool = defineTool({
  name: 'retry_task',
  title: 'Retry failed tasks in place',
  description:
    'Run a task that failed or was cancelled again in its graph (task_id), or all such tasks of a graph (graph_id). Everything downstream runs again too, and the graph ends again: wait for it. rerun_graph makes a new graph instead.',
  right: 'submit',
  input: RetryTaskInput,
  answer: RetryTaskAnswer,
  async run({ task_id, graph_id, revision, idempotency_key: key }, parts, { by }): Promise<RetryTaskAnswer> {
    if ((task_id === undefined) === (graph_id === undefined))
      throw badRequest('invalid input: give either task_id or graph_id')
    const call = { body: new TextEncoder().encode(JSON.stringify({ revision })), key, by }
    const text =
      task_id === undefined
        ? await retryGraph(parts, graph_id!, call)
        : await retryTask(parts, addressOf(parts.store, task_id), call)
    const answer = JSON.parse(text) as RetryResponse
    const { retried } = answer
    const isScoped = parts.store.graph(answer.graph_id)?.isScoped === true
    return {
      ...{ graph_id: answer.graph_id, pending: answer.pending },
      retried: retried.slice(0, MAX_SHOWN_TASKS).map((id) => (isScoped ? `${answer.graph_id}/${id}` : id)),
    }
  },
})

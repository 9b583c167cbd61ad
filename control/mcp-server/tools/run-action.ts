/** `run_action`: has one thing done, as POST /adapters/actions does, and answers with what came of it. */
import type { ActionResponse } from '../../../shared/contract/adapter-v1.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { RunActionAnswer, RunActionInput } from '../../../shared/contract/mcp-server.ts'
import { submitAction } from '../../operations/act.ts'
import { waitForTasks } from '../../operations/wait.ts'
import { defineTool } from '../tool.ts'
import { waitAnswer } from '../view.ts'

export const runActionTool = defineTool({
  name: 'run_action',
  title: 'Run one action',
  description:
    'Have one thing done on the machine of the service (a program, a file, an HTTP request, a tool of an MCP server, a limited process of the runtime service) and get its result. Waits for it up to wait_ms; what takes longer goes on, and wait sees its end. capabilities lists the kinds.',
  input: RunActionInput,
  answer: RunActionAnswer,
  isDestructive: true,
  async run({ kind, input, tool_name, action_id, retry, timeout, metadata, wait_ms = 10_000 }, parts, context) {
    const request = {
      adapter: 'mcp',
      ...(action_id !== undefined && { action_id }),
      ...(metadata !== undefined && { metadata }),
      action: { kind, input, tool_name, retry, timeout },
    }
    const call = { body: new TextEncoder().encode(JSON.stringify(request)), maxGraphBytes: parts.maxBodyBytes }
    const answer = JSON.parse(await submitAction(parts, call, { traceId: context.traceId })) as ActionResponse
    const { accepted, task_ids, translation_trace, warnings } = answer
    const tasks = task_ids.flatMap((id) => parts.store.get(id) ?? [])
    return waitForTasks(parts, { tasks }, { until: 'all', timeoutMs: wait_ms }, context, (waited) => ({
      ...{ accepted, task_ids: task_ids.slice(0, MAX_SHOWN_TASKS), kind: translation_trace.normalized_kind },
      ...(warnings !== undefined && { warnings: [...warnings] }),
      ...waitAnswer(waited),
    }))
  },
})

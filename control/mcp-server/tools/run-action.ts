/** `run_action`: runs one action, as POST /adapters/actions does, and returns its result. */

import { RunActionAnswer } from '../../../shared/contract/mcp-answers.ts'
import { RunActionInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SHOWN_TASKS } from '../../../shared/contract/mcp-limits.ts'
import { act } from '../../operations/act.ts'
import { waitForTasks } from '../../operations/wait.ts'
import { briefWait } from '../brief.ts'
import { defineTool, originIn } from '../tool.ts'
import { waitAnswer } from '../view.ts'

export const runActionTool = defineTool({
  name: 'run_action',
  title: 'Run one action',
  description:
    'Run one action on the machine of the service (a program, a file operation, an HTTP request, a tool of an MCP server, or a process with limits in the runtime service) and get its result. If it takes longer than wait_ms, it keeps running: call wait.',
  right: 'submit',
  input: RunActionInput,
  answer: RunActionAnswer,
  brief: briefWait,
  isDestructive: true,
  async run(
    { kind, input, tool_name, action_id, retry, timeout, queue_timeout, secrets, metadata, wait_ms = 10_000 },
    parts,
    context,
  ): Promise<RunActionAnswer> {
    const request = {
      adapter: 'mcp',
      ...(action_id !== undefined && { action_id }),
      ...(metadata !== undefined && { metadata }),
      action: {
        kind,
        ...(input !== undefined && { input }),
        ...(tool_name !== undefined && { tool_name }),
        ...(retry !== undefined && { retry }),
        ...(timeout !== undefined && { timeout }),
        ...(queue_timeout !== undefined && { queue_timeout }),
        ...(secrets !== undefined && { secrets }),
      },
    }
    const { tasks, kind: understoodAs, warnings } = await act(parts, { request }, originIn(context))
    const submitted = {
      accepted: tasks.length,
      task_ids: tasks.slice(0, MAX_SHOWN_TASKS).map(({ address }) => address),
      kind: understoodAs,
      ...(warnings.length > 0 && { warnings: [...warnings] }),
    }
    const options = { until: 'all', timeoutMs: wait_ms } as const
    return waitForTasks(parts, { tasks }, options, context, (...waited) => ({ ...submitted, ...waitAnswer(...waited) }))
  },
})

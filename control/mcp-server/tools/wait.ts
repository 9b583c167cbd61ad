/** `wait`: returns when the tasks have ended or the time is up. A model calls it again until all tasks have ended. */
import { WaitAnswer, WaitInput } from '../../../shared/contract/mcp-server.ts'
import { wait } from '../../operations/wait.ts'
import { defineTool } from '../tool.ts'
import { waitAnswer } from '../view.ts'

export const waitTool = defineTool({
  name: 'wait',
  title: 'Wait for tasks',
  description:
    'Wait until tasks, or all tasks of a graph, have ended, and get their states and results. The call returns after timeout_ms at the latest; repeat it until all_terminal is true. Use it instead of polling get_task.',
  input: WaitInput,
  answer: WaitAnswer,
  isReadOnly: true,
  run: ({ until = 'all', timeout_ms = 30_000, ...named }, parts, context): Promise<WaitAnswer> =>
    wait(parts, { ...named, until, timeoutMs: timeout_ms }, context, waitAnswer),
})

/** `wait`: answers when tasks have ended or the time is up. A model calls it again until they have ended. */
import { WaitAnswer, WaitInput } from '../../../shared/contract/mcp-server.ts'
import { wait } from '../../operations/wait.ts'
import { defineTool } from '../tool.ts'
import { waitAnswer } from '../view.ts'

export const waitTool = defineTool({
  name: 'wait',
  title: 'Wait for tasks',
  description:
    'Wait until tasks, or all tasks of a graph, have ended, and get their states and results. Answers after timeout_ms at the latest; call it again until all_terminal is true. Use it instead of asking again and again.',
  input: WaitInput,
  answer: WaitAnswer,
  isReadOnly: true,
  run: ({ until = 'all', timeout_ms = 30_000, ...named }, parts, context): Promise<WaitAnswer> =>
    wait(parts, { ...named, until, timeoutMs: timeout_ms }, context, waitAnswer),
})

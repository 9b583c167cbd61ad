/** `signal_task`: ends a task that waits for a signal, as POST /tasks/{id}/signal does. */
import { badRequest } from '../../../shared/contract/errors.ts'
import { SignalTaskAnswer } from '../../../shared/contract/mcp-answers.ts'
import { SignalTaskInput } from '../../../shared/contract/mcp-inputs.ts'
import { MAX_SIGNAL_BYTES } from '../../../shared/contract/signal.ts'
import { addressOf, knownTask } from '../../operations/named-tasks.ts'
import { signalTask } from '../../operations/signal-task.ts'
import { defineTool } from '../tool.ts'

export const signalTaskTool = defineTool({
  name: 'signal_task',
  title: 'Signal to a task',
  description:
    'Signal to a task of type wait that waits for it. The task succeeds, with value as its result. The same value again changes nothing.',
  right: 'answer',
  input: SignalTaskInput,
  answer: SignalTaskAnswer,
  async run({ task_id, value = null }, parts): Promise<SignalTaskAnswer> {
    const body = new TextEncoder().encode(JSON.stringify(value))
    if (body.length > MAX_SIGNAL_BYTES)
      throw badRequest(`invalid input: value: more than ${MAX_SIGNAL_BYTES} bytes as JSON (pass a path or an address)`)
    const address = addressOf(parts.store, task_id)
    await signalTask(parts, address, body)
    const task = knownTask(parts.store, address)
    return { id: task.address, status: task.status }
  },
})

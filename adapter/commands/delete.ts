/** `taskmill delete`: removes the records of tasks. It does not stop what they run. */
import { list } from '../../shared/flags.ts'
import { PartialFailure, success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { callEach } from './each-id.ts'
import { taskIdsOf } from './task-ids.ts'

export const deleteTasks = defineCommand({
  summary: 'Delete the records of tasks. A running attempt is not stopped: cancel it first.',
  usage: 'TASK_ID...',
  settings: { taskIds: list({ value: 'a,b', help: 'Task ids, in addition to the arguments.' }) },
  maxArguments: Number.POSITIVE_INFINITY,
  async run({ values, positionals, client }) {
    const deleted: string[] = []
    const failure = await callEach(taskIdsOf(positionals, values), async (id) => {
      await client.call({ method: 'DELETE', path: `/tasks/${encodeURIComponent(id)}` })
      deleted.push(id)
    })
    if (failure !== undefined) throw new PartialFailure(failure.message, failure, { deleted })
    return success({ deleted })
  },
})

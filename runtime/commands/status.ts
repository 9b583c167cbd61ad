/** `taskmill-runtime status`: prints the current record of a task. */
import { defineCommand, taskPath } from './command.ts'

export const status = defineCommand({
  summary: 'Show a task.',
  usage: 'TASK_ID',
  settings: {},
  takesTaskId: true,
  async run({ taskId, client }) {
    return { body: await client.call({ method: 'GET', path: taskPath(taskId) }), exitCode: 0 }
  },
})

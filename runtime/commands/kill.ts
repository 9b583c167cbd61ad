/** `taskmill-runtime kill`: asks for the end of a task. */
import { text } from '../../shared/flags.ts'
import { headerValue } from '../../shared/header-text.ts'
import { defineCommand, taskPath } from './command.ts'

export const kill = defineCommand({
  summary: 'End a task: TERM, and KILL after the grace time.',
  usage: 'TASK_ID [--owner NAME]',
  settings: {
    owner: text({
      variable: 'SERVICE_RUNTIME_OWNER',
      value: 'name',
      help: 'Owner of the task, which tasks that were submitted with one ask for.',
    }),
  },
  takesTaskId: true,
  async run({ values, taskId, client }) {
    const headers = values.owner === '' ? undefined : { 'x-service-owner': headerValue(values.owner) }
    return { body: await client.call({ method: 'POST', path: taskPath(taskId, '/kill'), headers }), exitCode: 0 }
  },
})

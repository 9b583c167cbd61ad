/** `taskmill-runtime kill`: kills a task. */

import { headerValue } from '../../shared/http/header-text.ts'
import { text } from '../../shared/settings/flags.ts'
import { defineCommand, taskPath } from './command.ts'

export const kill = defineCommand({
  summary: 'Kill a task: SIGTERM, then SIGKILL after the grace period.',
  usage: 'TASK_ID [--owner NAME]',
  settings: {
    owner: text({
      variable: 'SERVICE_RUNTIME_OWNER',
      value: 'name',
      help: 'Owner of the task. Required for a task that was submitted with one.',
    }),
  },
  takesTaskId: true,
  async run({ values, taskId, client }) {
    const headers = values.owner === '' ? undefined : { 'x-service-owner': headerValue(values.owner) }
    return { body: await client.call({ method: 'POST', path: taskPath(taskId, '/kill'), headers }), exitCode: 0 }
  },
})

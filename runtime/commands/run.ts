/** `taskmill-runtime run`: submits a task, waits until it ends and prints it. */
import { defineCommand } from './command.ts'
import { readRequest, requestSettings } from './submit.ts'
import { waitForEnd, waitSettings } from './wait.ts'

export const run = defineCommand({
  summary: 'Submit a task, wait until it ends and show it. The exit code is 0 only if it succeeded.',
  usage: '[--file request.json | --json TEXT]',
  settings: { ...requestSettings, ...waitSettings },
  takesTaskId: false,
  async run({ values, client }) {
    const body = await readRequest(values)
    const accepted = await client.call({ method: 'POST', path: '/api/v1/tasks', body })
    const { task_id } = accepted as { task_id?: unknown }
    const { task } = await waitForEnd(client, String(task_id), values.timeout)
    return { body: task, exitCode: task.status === 'success' ? 0 : 1 }
  },
})

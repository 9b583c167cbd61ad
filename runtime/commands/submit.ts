/** `taskmill-runtime submit`: sends a request unchanged. The service validates it. */
import { defineCommand } from './command.ts'
import { readRequest, requestSettings } from './request.ts'

export const submit = defineCommand({
  summary: 'Submit a task: {"execution": {"kind": "command", "program": "/bin/echo", "args": ["hello"]}}.',
  usage: '[--file request.json | --json TEXT]',
  settings: requestSettings,
  takesTaskId: false,
  async run({ values, client }) {
    const body = await readRequest(values)
    return { body: await client.call({ method: 'POST', path: '/api/v1/tasks', body }), exitCode: 0 }
  },
})

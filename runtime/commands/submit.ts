/** `taskmill-runtime submit`: sends a request unchanged. The service validates it. */
import { flag } from '../../shared/settings/flags.ts'
import { defineCommand } from './command.ts'
import { readRequest, requestSettings } from './request.ts'

export const submit = defineCommand({
  summary: 'Submit a task: {"execution": {"kind": "command", "program": "/bin/echo", "args": ["hello"]}}.',
  usage: '[--file request.json | --json TEXT] [--dry-run]',
  settings: {
    ...requestSettings,
    dryRun: flag({ help: 'Only check: show the plan, or why the task is refused. Nothing is kept.' }),
  },
  takesTaskId: false,
  async run({ values, client }) {
    const body = await readRequest(values)
    const path = values.dryRun ? '/api/v1/tasks?dry_run=true' : '/api/v1/tasks'
    return { body: await client.call({ method: 'POST', path, body }), exitCode: 0 }
  },
})

/** `taskmill-runtime submit`: sends a request unchanged. The service validates it. */
import { UsageError } from '../../shared/contract/errors.ts'
import { readInput } from '../../shared/request/request-input.ts'
import { flag, text } from '../../shared/settings/flags.ts'
import { defineCommand } from './command.ts'

/** The request that `submit` and `run` send: from a file, from --json, or from standard input. */
export const requestSettings = {
  file: text({ value: 'file', help: 'File to send. Default, or with -: standard input.' }),
  json: text({ value: 'text', help: 'The request itself, in place of a file.' }),
}

export async function readRequest({ file, json }: { file: string; json: string }): Promise<Uint8Array> {
  if (file !== '' && json !== '') throw new UsageError('give --file or --json, not both')
  return json === '' ? readInput(file, 'a task request') : new TextEncoder().encode(json)
}

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

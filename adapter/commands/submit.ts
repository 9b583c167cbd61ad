/** `taskmill submit`: sends a task graph unchanged. The service validates it. */

import { fileSetting, readInput } from '../../shared/request-input.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'

export const submit = defineCommand({
  summary: 'Submit a task graph: {"tasks": [{"id", "type", ...}]}.',
  usage: '[--file graph.json]',
  settings: { file: fileSetting },
  takesArguments: false,
  async run({ values, client }) {
    const body = await readInput(values.file, 'a task graph')
    return submitted(await client.call({ method: 'POST', path: '/tasks', body }))
  },
})

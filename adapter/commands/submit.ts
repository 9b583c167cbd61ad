/** `taskmill submit`: sends a task graph unchanged. The service validates it. */
import { readInput } from '../../shared/request-input.ts'
import { submitted } from '../warnings.ts'
import { defineCommand } from './command.ts'
import { fileOf, fileSetting } from './file-argument.ts'

export const submit = defineCommand({
  summary: 'Submit a task graph: {"tasks": [{"id", "type", ...}]}.',
  usage: '[FILE]',
  settings: { file: fileSetting },
  maxArguments: 1,
  async run({ values, positionals, client }) {
    const body = await readInput(fileOf(positionals, values), 'a task graph')
    return submitted(await client.call({ method: 'POST', path: '/tasks', body }))
  },
})

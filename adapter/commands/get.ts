/** `taskmill get`: a task, or a graph. */
import { atAddress } from '../addresses.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'
import { shown } from './shown.ts'

export const get = defineCommand({
  summary: 'Show a task: its state, parameters, result, error, times. For a graph, the same as graph.',
  usage: 'ID',
  settings: {},
  maxArguments: 1,
  async run({ positionals, client, env }) {
    const id = onlyIdOf(positionals, 'task id')
    const { address, answer } = await atAddress(id, ({ path }) => client.call({ method: 'GET', path }))
    return shown({ kind: address.kind, name: id }, answer, { client, env })
  },
})

/** `taskmill retry`: runs a failed task, or all failed tasks of a graph, again in place. */
import { atAddress } from '../addresses.ts'
import { success } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const retry = defineCommand({
  summary: 'Run a failed or cancelled task again in its graph, or all of a graph, with all that depends on them.',
  usage: 'TASK_OR_GRAPH',
  settings: {},
  maxArguments: 1,
  async run({ positionals, client }) {
    const id = onlyIdOf(positionals, 'task or graph id')
    const { answer } = await atAddress(id, ({ path }) => client.call({ method: 'POST', path: `${path}/retry` }))
    return success(answer)
  },
})

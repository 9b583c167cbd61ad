/** `taskmill network`: the connections of a task whose network has rules. */
import type { TaskNetwork } from '../../shared/contract/task-network.ts'
import { atTask } from '../addresses.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const network = defineCommand({
  summary: 'Show the connections of a task whose network has rules: allowed, refused, the rule, bytes, totals.',
  usage: 'TASK_ID',
  settings: {},
  maxArguments: 1,
  async run({ positionals, client }) {
    const { answer } = await atTask(onlyIdOf(positionals, 'task id'), client, ({ path }) =>
      client.call({ method: 'GET', path: `${path}/network` }),
    )
    const data = answer as TaskNetwork
    return {
      data,
      exitCode: EXIT.success,
      table: async (look) => (await import('../table/network.ts')).networkTable(data, look),
    }
  },
})

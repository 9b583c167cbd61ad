/** `taskmill get`: a task, or a graph. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { atAddress } from '../addresses.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const get = defineCommand({
  summary: 'Show a task: its state, parameters, result, error, times. Of a graph the same as graph.',
  usage: 'ID',
  settings: {},
  maxArguments: 1,
  async run({ positionals, client }) {
    const id = onlyIdOf(positionals, 'task id')
    const { address, answer } = await atAddress(id, ({ path }) => client.call({ method: 'GET', path }))
    return {
      data: answer,
      exitCode: EXIT.success,
      table: async (look) =>
        address.kind === 'graph'
          ? (await import('../table/graph.ts')).graphDetailsTable(answer as GraphDetails, look)
          : (await import('../table/record.ts')).recordTable(answer as TaskRecord, look),
    }
  },
})

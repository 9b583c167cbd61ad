/** `taskmill graph`: one graph with its tasks. */
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'

export const graph = defineCommand({
  summary: 'Show a graph: its tasks in order, the chain that took the longest, why it failed.',
  usage: 'GRAPH_ID',
  settings: {},
  maxArguments: 1,
  async run({ positionals, client }) {
    const id = onlyIdOf(positionals, 'graph id')
    const data = await client.call({ method: 'GET', path: `/graphs/${encodeURIComponent(id)}` })
    return {
      data,
      exitCode: EXIT.success,
      table: async (look) => (await import('../table/graph.ts')).graphDetailsTable(data as GraphDetails, look),
    }
  },
})

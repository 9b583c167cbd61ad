/** `taskmill graph`: one graph with its tasks. */
import { defineCommand } from './command.ts'
import { onlyIdOf } from './ids.ts'
import { shown } from './shown.ts'

export const graph = defineCommand({
  summary: 'Show a graph: its tasks in order, the critical path, why it failed.',
  usage: 'GRAPH_ID',
  settings: {},
  maxArguments: 1,
  async run({ positionals, client, env }) {
    const id = onlyIdOf(positionals, 'graph id')
    const details = await client.call({ method: 'GET', path: `/graphs/${encodeURIComponent(id)}` })
    return shown({ kind: 'graph', name: id }, details, { client, env })
  },
})

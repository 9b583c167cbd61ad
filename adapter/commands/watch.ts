/** `taskmill watch`: follows a graph that was submitted before. */
import { defineCommand } from './command.ts'
import { followSettings, showSettings } from './follow-settings.ts'
import { onlyIdOf } from './ids.ts'

export const watch = defineCommand({
  summary: 'Follow a graph to its end, as run does. Ctrl-C leaves it running.',
  usage: 'GRAPH_ID [--timeout 10m]',
  settings: followSettings,
  maxArguments: 1,
  heedsInterruption: true,
  async run({ values, positionals, given, client, env, interruption }) {
    const graphId = onlyIdOf(positionals, 'graph id')
    const { showGraph } = await import('../follow/show.ts')
    const title = ` taskmill  graph ${graphId} on ${client.baseUrl}`
    const request = { client, graphId, title, expectations: new Map(), ...showSettings(values, given) }
    return showGraph({ ...request, env, interruption })
  },
})

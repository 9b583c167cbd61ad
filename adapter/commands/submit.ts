/** `taskmill submit`: sends a task graph. The service validates it. */
import { flag } from '../../shared/settings/flags.ts'
import { submitted } from '../warnings.ts'
import { checked } from './check.ts'
import { defineCommand } from './command.ts'
import { graphOf, graphSettings, inFile } from './graph-argument.ts'

export const submit = defineCommand({
  summary: 'Submit a task graph: {"tasks": [{"id", "type", ...}]}.',
  usage: '[FILE] [--set name=value] [--dry-run]',
  settings: {
    ...graphSettings,
    dryRun: flag({ help: 'Submit nothing: show the faults of the graph and the order of its tasks, as check does.' }),
  },
  maxArguments: 1,
  async run({ values, positionals, client, env }) {
    const graph = await graphOf(positionals, values)
    if (values.dryRun) return checked(client, graph)
    const answer = await inFile(graph, client.call({ method: 'POST', path: '/tasks', body: graph.bytes }))
    return submitted(answer, { client, env })
  },
})

/** `taskmill check`: the faults of a graph and the order of its tasks, without a submission. */
import type { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import type { ServiceClient } from '../../shared/http-client.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { defineCommand } from './command.ts'
import { type GivenGraph, graphOf, graphSettings, inFile } from './graph-argument.ts'

export const check = defineCommand({
  summary:
    'Check a task graph without submitting it: its faults, the order of its tasks. Exit code 1 if it has a fault.',
  usage: '[FILE] [--set name=value]',
  settings: graphSettings,
  maxArguments: 1,
  async run({ values, positionals, client }) {
    const graph = await graphOf(positionals, values)
    const { withScope } = await import('../follow/graph-file.ts')
    return checked(client, { ...graph, bytes: withScope(graph.bytes) }) // the file is judged, not which ids the service has
  },
})

/** The answer of a dry run. */
export async function checked(client: ServiceClient, graph: GivenGraph): Promise<Answer> {
  const call = client.call({ method: 'POST', path: '/tasks?dry_run=true', body: graph.bytes })
  const found = (await inFile(graph, call)) as GraphDryRun
  const data = { ...found, errors: found.errors.map((fault) => ({ ...fault, message: graph.said(fault.message) })) }
  const { scriptHints } = await import('../graph-file/script-hints.ts')
  return {
    data,
    warnings: scriptHints(graph.bytes),
    exitCode: data.valid ? EXIT.success : EXIT.error,
    table: async (look) => (await import('../table/dry-run.ts')).dryRunTable(data, look),
  }
}

/** `taskmill check`: the faults of a graph and the order of its tasks, without a submission. */

import type { GraphDryRun, GraphFault } from '../../shared/contract/graph-dry-run.ts'
import { isMeant } from '../../shared/http/certain-failures.ts'
import type { ServiceClient } from '../../shared/http/client.ts'
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
  const data = await asMeant(graph, found)
  const { scriptHints } = await import('../graph-file/script-hints.ts')
  return {
    data,
    warnings: scriptHints(graph.bytes),
    exitCode: data.valid ? EXIT.success : EXIT.error,
    table: async (look) => (await import('../table/dry-run.ts')).dryRunTable(data, look),
  }
}

/** The findings in the terms of the file. Failures that its annotations expect are no faults. */
async function asMeant({ bytes, said }: GivenGraph, found: GraphDryRun): Promise<GraphDryRun> {
  const { expectationsIn } = await import('../follow/graph-file.ts')
  const expectations = expectationsIn(bytes)
  const isNoFault = ({ fails, task_id = '' }: GraphFault) =>
    fails === true && isMeant(expectations.get(task_id)?.expect)
  const errors = found.errors.filter((fault) => !isNoFault(fault))
  const meant = found.errors.filter(isNoFault)
  return {
    ...found,
    valid: errors.length === 0,
    errors: errors.map((fault) => ({ ...fault, message: said(fault.message) })),
    warnings: [...found.warnings, ...meant.map(({ task_id = '', message }) => ({ task_id, message }))],
  }
}

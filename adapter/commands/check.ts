/** `taskmill check`: the faults of a graph and the order of its tasks, without a submission. */

import type { GraphDryRun, GraphFault } from '../../shared/contract/graph-dry-run.ts'
import { isMeant } from '../../shared/http/certain-failures.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
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
    const answer = await checked(client, { ...graph, bytes: withScope(graph.bytes) }) // the file is judged, not which ids the service has
    return graph.schedule === undefined ? answer : withSchedule(answer, await scheduleFault(client, graph))
  },
})

/** What is wrong with the field `schedule`; undefined if nothing is. Faults of the graph are known. */
async function scheduleFault(client: ServiceClient, graph: GivenGraph): Promise<string | undefined> {
  const { nameOf, putRequest } = await import('./schedule.ts')
  const { name = nameOf(graph.name), fields } = graph.schedule!
  try {
    await client.call(putRequest(name, fields, graph, true))
  } catch (error) {
    if (!(error instanceof CallFailed) || error.statusCode !== 400) throw error
    if (!error.message.startsWith('graph: ')) return `schedule: ${error.message.replace(/^invalid JSON: /, '')}`
  }
  return undefined
}

function withSchedule(answer: DryRunAnswer, fault: string | undefined): DryRunAnswer {
  if (fault === undefined) return answer
  const data = { ...answer.data, valid: false, errors: [...answer.data.errors, { message: fault }] }
  return dryRunAnswer(data, answer.warnings)
}

type DryRunAnswer = Answer & { readonly data: GraphDryRun; readonly warnings: readonly string[] }

const dryRunAnswer = (data: GraphDryRun, warnings: readonly string[]): DryRunAnswer => ({
  data,
  warnings,
  exitCode: data.valid ? EXIT.success : EXIT.error,
  table: async (look) => (await import('../table/dry-run.ts')).dryRunTable(data, look),
})

/** The answer of a dry run. */
export async function checked(client: ServiceClient, graph: Omit<GivenGraph, 'schedule'>): Promise<DryRunAnswer> {
  const call = client.call({ method: 'POST', path: '/tasks?dry_run=true', body: graph.bytes })
  const found = (await inFile(graph, call)) as GraphDryRun
  const data = await asMeant(graph, found)
  const { scriptHints } = await import('../graph-file/script-hints.ts')
  return dryRunAnswer(data, scriptHints(graph.bytes))
}

/** The findings in the terms of the file. Failures that its annotations expect are no faults. */
async function asMeant({ bytes, said }: Pick<GivenGraph, 'bytes' | 'said'>, found: GraphDryRun): Promise<GraphDryRun> {
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

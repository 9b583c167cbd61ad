/** The answer of `get` and `graph`: the record of a task, or a graph, as it is. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { Address } from '../addresses.ts'
import { graphInBrief, taskInBrief } from '../brief.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { type Caller, suggestedCommand } from '../own-command.ts'

export const shown = ({ kind, name }: Shown, data: object, caller: Caller): Answer => ({
  data,
  exitCode: EXIT.success,
  brief: () =>
    kind === 'graph' ? graphInBrief(data as GraphDetails, caller) : taskInBrief(data as TaskRecord, name, caller),
  table: async (look) =>
    kind === 'graph'
      ? (await import('../table/graph.ts')).graphDetailsTable(withOwnCommands(data as GraphDetails, caller), look)
      : (await import('../table/record.ts')).recordTable(data as TaskRecord, look),
})

/** What an argument named. */
interface Shown {
  readonly kind: Address['kind']
  readonly name: string
}

/** The service suggests commands without its own address: it does not know how it is reached. */
function withOwnCommands(graph: GraphDetails, caller: Caller): GraphDetails {
  const { root_cause } = graph
  if (root_cause === undefined) return graph
  const try_next = root_cause.try_next.map((command) => suggestedCommand(command, caller))
  return { ...graph, root_cause: { ...root_cause, try_next } }
}

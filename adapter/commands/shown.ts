/** The answer of `get` and `graph`: the record of a task, or a graph, as it is. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { Address } from '../addresses.ts'
import { type Answer, EXIT } from '../envelope.ts'
import { type Caller, suggestedCommand } from '../own-command.ts'

export const shown = (kind: Address['kind'], data: object, caller: Caller): Answer => ({
  data,
  exitCode: EXIT.success,
  table: async (look) =>
    kind === 'graph'
      ? (await import('../table/graph.ts')).graphDetailsTable(withOwnCommands(data as GraphDetails, caller), look)
      : (await import('../table/record.ts')).recordTable(data as TaskRecord, look),
})

/** The service suggests commands without its own address: it does not know how it is reached. */
function withOwnCommands(graph: GraphDetails, caller: Caller): GraphDetails {
  const { root_cause } = graph
  if (root_cause === undefined) return graph
  const try_next = root_cause.try_next.map((command) => suggestedCommand(command, caller))
  return { ...graph, root_cause: { ...root_cause, try_next } }
}

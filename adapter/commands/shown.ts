/** The answer of `get` and `graph`: the record of a task, or a graph, as it is. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { Address } from '../addresses.ts'
import { type Answer, EXIT } from '../envelope.ts'

export const shown = (kind: Address['kind'], data: object): Answer => ({
  data,
  exitCode: EXIT.success,
  table: async (look) =>
    kind === 'graph'
      ? (await import('../table/graph.ts')).graphDetailsTable(data as GraphDetails, look)
      : (await import('../table/record.ts')).recordTable(data as TaskRecord, look),
})

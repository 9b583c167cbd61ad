/** Graphs as text: a list of them, or one with its tasks. Pure. */
import type {
  GraphCounts,
  GraphDetails,
  GraphSummary,
  RootCause,
  UnreadableGraph,
} from '../../shared/contract/graphs.ts'
import { visibleLine } from '../../shared/text/visible-text.ts'
import { alignedFields, alignedRows, type Cell, cutToScreen } from './columns.ts'
import { textLines } from './general.ts'
import type { Look } from './look.ts'
import { taskTable, tookWords } from './tasks.ts'
import { stateCell, timeAgo, timeTaken } from './words.ts'

export function graphsTable(graphs: readonly (GraphSummary | UnreadableGraph)[], look: Look): string[] {
  if (graphs.length === 0) return [look.paint('dim', 'no graphs')]
  const hasTenants = graphs.some((graph) => 'tenant' in graph)
  const rows = graphs.map((graph): Cell[] =>
    'set_aside_at' in graph
      ? [{ text: graph.graph_id }, { text: graph.state, style: 'red' }, { text: graph.error }]
      : [
          { text: graph.graph_id },
          stateCell(graph.state),
          { text: graph.name ?? '', style: 'bold' },
          { text: countWords(graph.counts) },
          { text: tookWords(graph, look.nowMs), isRight: true },
          { text: timeAgo(graph.created_at, look.nowMs), style: 'dim' },
          ...(hasTenants ? [{ text: graph.tenant ?? '' }] : []),
          { text: labelWords(graph), style: 'dim' },
        ],
  )
  const tenant = hasTenants ? ['TENANT'] : []
  return alignedRows(['GRAPH', 'STATE', 'NAME', 'TASKS', 'TOOK', 'CREATED', ...tenant, 'LABELS'], rows, look)
}

export function graphDetailsTable(graph: GraphDetails, look: Look): string[] {
  const { critical_path, tasks, truncated = false } = graph
  const fields: [string, Cell][] = [
    ['graph', { text: graph.graph_id }],
    ['name', { text: graph.name ?? '', style: 'bold' }],
    ['tenant', { text: graph.tenant ?? '' }],
    ['labels', { text: labelWords(graph) }],
    ['state', stateCell(graph.state)],
    ['tasks', { text: countWords(graph.counts) }],
    ['created', { text: timeAgo(graph.created_at, look.nowMs) }],
    ['took', { text: tookWords(graph, look.nowMs) }],
    ['longest', { text: longestWords(critical_path) }],
  ]
  return [
    ...alignedFields(
      fields.filter(([, { text }]) => text !== ''),
      look,
    ),
    '',
    ...taskTable(tasks, look),
    ...(truncated ? [look.paint('dim', `the first ${tasks.length} of ${graph.task_count} tasks`)] : []),
    ...(graph.root_cause === undefined ? [] : rootCauseLines(graph.root_cause, look)),
  ]
}

export function rootCauseLines(cause: RootCause, look: Look): string[] {
  const { task_id, error, tail, remedy, skipped, try_next } = cause
  const consequence = skipped === 0 ? '' : `; ${skipped} skipped because of it`
  return [
    '',
    cutToScreen(look.paint('red', visibleLine(`${task_id} failed first: ${error}${consequence}`)), look),
    ...(tail === undefined ? [] : textLines(tail, look)),
    ...(remedy === undefined ? [] : [visibleLine(`to do: ${remedy}`)]),
    ...try_next.map((command) => visibleLine(`try: ${command}`)),
  ]
}

/** `3 success, 1 failed`. */
const countWords = (counts: GraphCounts): string =>
  Object.entries(counts)
    .map(([status, number]) => `${number} ${status}`)
    .join(', ')

const labelWords = ({ labels = {} }: GraphSummary): string =>
  Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(' ')

const longestWords = ({ task_ids, duration_ms }: GraphDetails['critical_path']): string =>
  task_ids.length === 0 ? '' : `${timeTaken(duration_ms)}: ${task_ids.join(' > ')}`

/** Tasks as a table. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import { alignedRows, type Cell } from './columns.ts'
import type { Look } from './look.ts'
import { waitingWords } from './waiting.ts'
import { taskStateCell, timeAgo, timeTaken } from './words.ts'

/** A row is made from a record, or from the entry of a task in the answer about its graph. */
export type TableTask = Pick<TaskRecord, 'id' | 'type' | 'status'> &
  Partial<
    Pick<
      TaskRecord,
      | 'tool_name'
      | 'attempt'
      | 'started_at'
      | 'finished_at'
      | 'error'
      | 'created_at'
      | 'waiting'
      | 'continue_on_error'
      | 'reused_from'
    >
  >

export function taskTable(tasks: readonly TableTask[], look: Look): string[] {
  const header = ['ID', 'STATUS', 'TYPE', 'TRIES', 'TOOK', 'CREATED', 'WHY']
  return tasks.length === 0
    ? [look.paint('dim', 'no tasks')]
    : alignedRows(
        header,
        tasks.map((task) => rowOf(task, look.nowMs)),
        look,
      )
}

function rowOf(task: TableTask, nowMs: number): Cell[] {
  const { id, attempt = 0, created_at, error = '' } = task
  return [
    { text: id },
    taskStateCell(task),
    { text: typeWords(task) },
    { text: attempt > 1 ? `×${attempt}` : '', style: 'yellow' },
    { text: tookWords(task, nowMs), isRight: true },
    { text: timeAgo(created_at, nowMs), style: 'dim' },
    { text: error || waitingWords(task.waiting) || (task.reused_from && `reused from ${reusedWords(task)}`) || '' },
  ]
}

export const typeWords = ({ type, tool_name }: Pick<TableTask, 'type' | 'tool_name'>): string =>
  tool_name === undefined ? type : `${type}.${tool_name}`

/** `GRAPH_ID/TASK_ID` of the task whose outcome a rerun reused. Empty for others. */
export const reusedWords = ({ reused_from: from }: Pick<TableTask, 'reused_from'>): string =>
  from === undefined ? '' : `${from.graph_id}/${from.task_id}`

/** The duration; of a running task, until now. */
export function tookWords(
  { started_at, finished_at }: Pick<TableTask, 'started_at' | 'finished_at'>,
  nowMs: number,
): string {
  if (started_at === undefined) return ''
  return timeTaken((finished_at === undefined ? nowMs : Date.parse(finished_at)) - Date.parse(started_at))
}

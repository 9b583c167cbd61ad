/** Computes the progress of a graph of the demo from its records and from the expectations in its file. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type GraphProgress, type ShownTask, taskProgress } from '../../shared/text/live-view/progress.ts'
import type { ExampleTask } from './graph.ts'

/** `records` are those of one graph; `now` is milliseconds since 1970, as Date.now() gives them. */
export function graphProgress(
  tasks: readonly ExampleTask[],
  records: readonly TaskRecord[],
  now: number,
): GraphProgress {
  const acceptedAt = records[0] === undefined ? now : Date.parse(records[0].created_at)
  const byId = new Map(records.map((record) => [record.id, record]))
  return {
    tasks: tasks.map((task) => taskProgress(shown(task), byId.get(task.id), acceptedAt)),
    nowMs: now - acceptedAt,
  }
}

const shown = ({ id, annotations: { title, expect, attempts } }: ExampleTask): ShownTask => ({
  id,
  title,
  expect,
  ...(attempts !== undefined && { attempts: Number(attempts) }),
})

/** What a task is up to, as the views show it: derived from its record and from what the example expects. Pure. */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { ExampleTask } from './graph.ts'

/** `retrying` is the pause between two attempts. */
export type Phase = 'waiting' | 'running' | 'retrying' | 'success' | 'failed' | 'skipped' | 'cancelled'

export interface TaskProgress {
  readonly id: string
  readonly title: string
  readonly phase: Phase
  /** 0 before the first attempt. */
  readonly attempt: number
  /** Why it failed or was skipped, else empty. */
  readonly reason: string
  /** It ended otherwise than the example says. */
  readonly isSurprise: boolean
  /** Milliseconds since the graph was accepted; absent before that. */
  readonly startMs?: number
  readonly endMs?: number
}

export interface GraphProgress {
  readonly tasks: readonly TaskProgress[]
  /** Milliseconds since the graph was accepted. */
  readonly nowMs: number
}

/** `records` are those of one graph; `now` is milliseconds since 1970, as Date.now() gives them. */
export function graphProgress(
  tasks: readonly ExampleTask[],
  records: readonly TaskRecord[],
  now: number,
): GraphProgress {
  const acceptedAt = records[0] === undefined ? now : Date.parse(records[0].created_at)
  const byId = new Map(records.map((record) => [record.id, record]))
  return { tasks: tasks.map((task) => taskProgress(task, byId.get(task.id), acceptedAt)), nowMs: now - acceptedAt }
}

function taskProgress(task: ExampleTask, record: TaskRecord | undefined, acceptedAt: number): TaskProgress {
  const sinceThen = (time: string) => Math.max(0, Date.parse(time) - acceptedAt)
  return {
    id: task.id,
    title: task.annotations.title,
    phase: phaseOf(record),
    attempt: record?.attempt ?? 0,
    reason: record?.error ?? '',
    isSurprise: record !== undefined && isSurprise(task, record),
    ...(record?.started_at !== undefined && { startMs: sinceThen(record.started_at) }),
    ...(record?.finished_at !== undefined && { endMs: sinceThen(record.finished_at) }),
  }
}

function phaseOf(record: TaskRecord | undefined): Phase {
  if (record === undefined) return 'waiting'
  switch (record.status) {
    case 'pending':
      return 'waiting'
    case 'running':
      return record.run_status === 'accepted' ? 'retrying' : 'running'
    case 'cancelling':
      return 'running'
    default:
      return record.status
  }
}

export const hasEnded = (phase: Phase): boolean => !['waiting', 'running', 'retrying'].includes(phase)

function isSurprise({ annotations }: ExampleTask, record: TaskRecord): boolean {
  if (!hasEnded(phaseOf(record))) return false
  if (record.status !== annotations.expect) return true
  return annotations.attempts !== undefined && record.attempt !== Number(annotations.attempts)
}

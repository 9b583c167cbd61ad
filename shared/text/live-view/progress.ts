/** What the views show of a task: derived from its state and from what its graph expects of it. Pure. */
import { isMeantEnd } from '../../contract/run-if.ts'
import type { TaskStatus } from '../../contract/task-status.ts'

/** `retrying` is the pause between two attempts. `asking`: somebody has to approve or reject the task. */
export type Phase = 'waiting' | 'asking' | 'running' | 'retrying' | 'success' | 'failed' | 'skipped' | 'cancelled'

/** What is known of a task before it runs. */
export interface ShownTask {
  readonly id: string
  /** What it does, for people. */
  readonly title: string
  /** The status that it is meant to end with. Absent: any but `failed`. */
  readonly expect?: string
  /** The number of the attempt that is meant to be its last. Absent: any. */
  readonly attempts?: number
}

/** What the service says of a task: the fields of its record, of its graph's list, or of an event. */
export interface TaskState {
  readonly status: TaskStatus
  readonly run_status?: string | undefined
  readonly waiting?: { readonly reason?: string | undefined } | undefined
  readonly attempt?: number | undefined
  readonly error?: string | undefined
  /** A failure counts as a success. */
  readonly continue_on_error?: boolean | undefined
  /** Where a rerun took the outcome from. The times are of that graph then. */
  readonly reused_from?: object | undefined
  readonly started_at?: string | undefined
  readonly finished_at?: string | undefined
}

export interface TaskProgress {
  readonly id: string
  readonly title: string
  readonly phase: Phase
  /** 0 before the first attempt. */
  readonly attempt: number
  /** Why it failed or was skipped, else empty. */
  readonly reason: string
  /** Why it waits, or what it reports while it runs. It stands in place of the title. */
  readonly detail?: string
  /** It ended otherwise than expected. */
  readonly isSurprise: boolean
  /** It was not executed: a rerun reused its outcome. */
  readonly isReused?: boolean
  /** It failed or was skipped as the rules of its graph provide for. */
  readonly isTolerated?: boolean
  /** For a child: the id of its task with for_each. */
  readonly parent?: string
  /** For a task with for_each: how many of its children have ended. */
  readonly children?: { readonly ended: number; readonly total: number } | undefined
  /** Milliseconds since the graph was accepted; absent before that. */
  readonly startMs?: number
  readonly endMs?: number
}

export interface GraphProgress {
  readonly tasks: readonly TaskProgress[]
  /** Milliseconds since the graph was accepted. */
  readonly nowMs: number
  /** A sentence about the view itself: that the service does not answer. */
  readonly notice?: string
}

/** `state` is undefined before the service knows the task; `acceptedAt` is in milliseconds since 1970. */
export function taskProgress(task: ShownTask, state: TaskState | undefined, acceptedAt: number): TaskProgress {
  const sinceThen = (time: string) => Math.max(0, Date.parse(time) - acceptedAt)
  const isReused = state?.reused_from !== undefined
  const { started_at, finished_at } = isReused ? {} : (state ?? {})
  return {
    id: task.id,
    title: task.title,
    phase: phaseOf(state),
    attempt: state?.attempt ?? 0,
    reason: state?.error ?? '',
    isSurprise: state !== undefined && isSurprise(task, state),
    ...(state !== undefined && isMeantEnd(state) && { isTolerated: true }),
    ...(isReused && { isReused }),
    ...(started_at !== undefined && { startMs: sinceThen(started_at) }),
    ...(finished_at !== undefined && { endMs: sinceThen(finished_at) }),
  }
}

function phaseOf(state: TaskState | undefined): Phase {
  if (state === undefined) return 'waiting'
  switch (state.status) {
    case 'pending':
      return state.waiting?.reason === 'approval' ? 'asking' : 'waiting'
    case 'running':
      if (state.run_status === 'accepted') return 'retrying'
      return state.waiting?.reason === undefined ? 'running' : 'waiting' // for a place in a runtime service, or for a disk
    case 'cancelling':
      return 'running'
    default:
      return state.status
  }
}

const OPEN: ReadonlySet<Phase> = new Set(['waiting', 'asking', 'running', 'retrying'])

export const hasEnded = (phase: Phase): boolean => !OPEN.has(phase)

/** Whether it failed, which counts as a success, and nobody expected otherwise. */
export const isToleratedFailure = ({ phase, isTolerated = false, isSurprise }: TaskProgress): boolean =>
  phase === 'failed' && isTolerated && !isSurprise

function isSurprise({ expect, attempts }: ShownTask, state: TaskState): boolean {
  if (!hasEnded(phaseOf(state))) return false
  const isExpected = expect === undefined ? state.status !== 'failed' || isMeantEnd(state) : state.status === expect
  if (!isExpected) return true
  return attempts !== undefined && state.attempt !== attempts
}

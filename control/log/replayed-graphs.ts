/**
 * The graphs of a replay, which are built from their entries, and what a start has to do about them.
 *
 * A crash leaves attempts that other services go on with, processes, and changes of which nobody was told.
 */
import { isTerminal, type TaskStatus } from '../../shared/contract/task-status.ts'
import type { ProcessIdentity } from '../../shared/process/processes.ts'
import type { Steps } from '../../shared/process/steps.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import type { Failure } from '../rules/failure.ts'
import { hasChildren } from '../rules/group-rule.ts'
import { withAttempt } from '../task/attempt-record.ts'
import type { Graph, Task } from '../task/graph.ts'
import { deletedWithParents } from './recovered-fan-outs.ts'
import { recoverGraph } from './recovered-graph.ts'
import type { StoredTask } from './stored-task.ts'

/** What an earlier start told of a task, with the number of that event. */
export interface ToldState {
  readonly seq: number
  readonly status: TaskStatus
}

interface ReplayedGraphsOptions {
  /** Numbers of graphs that were removed with all of their tasks. */
  readonly removed: ReadonlySet<number>
  /** For each graph the tasks with reused outcomes for which the journal has no number. */
  readonly untoldReuse: ReadonlyMap<number, ReadonlySet<string>>
  /** By graph and task. A state of the task with a higher number came later. */
  readonly told: ReadonlyMap<number, ReadonlyMap<string, ToldState>>
  /** Gets the numbers of graphs that may have ended just now. */
  readonly ended: Set<number>
  /** Attempts that were cut off fail with this. Undefined: they run again. */
  readonly failure: Failure | undefined
}

export class ReplayedGraphs {
  readonly #options: ReplayedGraphsOptions
  /** Tasks whose attempts other services have not ended yet. */
  readonly toKillRemotely: Task[] = []
  /** Tasks of removed graphs that other services may still have. */
  readonly toForget: Task[] = []
  readonly processes: ProcessIdentity[] = []
  /**
   * Tasks whose state differs from the disk and was not told by an earlier start, or whose reuse has no event yet: a crash
   * interrupted their attempts, or came before the events of a rerun.
   */
  readonly changed: Task[] = []
  /** Children that are deleted because their parents are, and of which nobody was told. */
  readonly deleted: Pick<Task, 'id' | 'graph'>[] = []
  /** Tasks that failed because the end of their service cut off their attempts. */
  readonly cutOff: Task[] = []
  /** Graphs without remaining tasks. Needed only for events that the history lacks. */
  readonly gone: Graph[] = []

  constructor(options: ReplayedGraphsOptions) {
    this.#options = options
  }

  /**
   * Builds the graph of these entries. Undefined if nothing is left of it: `keepsGone` adds it to `gone` then. Throws the
   * error that `refuse` makes.
   */
  *build(
    ordinal: number,
    stored: readonly StoredTask[],
    refuse: (detail: string) => Error,
    keepsGone = false,
  ): Steps<Graph | undefined> {
    const { removed, untoldReuse, told, ended, failure } = this.#options
    const cutOff = new Set(failure === undefined ? [] : stored.filter(isCutOff).map(({ id }) => id))
    const entries =
      cutOff.size === 0 ? stored : stored.map((entry) => (cutOff.has(entry.id) ? failedEntry(entry, failure!) : entry))
    if (removed.has(ordinal)) {
      // A crash may have come before the service that executed them was told.
      if (entries.some(({ handle_id }) => handle_id !== undefined))
        this.toForget.push(
          ...(yield* recoverGraph(ordinal, entries, refuse)).tasks.filter(({ isDeleted }) => !isDeleted),
        )
      return undefined
    }
    yield
    for (const { process } of entries) if (process !== undefined) this.processes.push(process)
    const isGone = entries.every((entry) => entry.deleted && !goesOnElsewhere(entry))
    if (isGone && !keepsGone && !entries.some(isToKillRemotely)) return undefined
    const graph = yield* recoverGraph(ordinal, entries, refuse, (entry, task) => {
      if (isToKillRemotely(entry) || isEndedElsewhere(entry, task)) this.toKillRemotely.push(task)
      if (task.isDeleted) return
      if (cutOff.has(task.id)) {
        this.cutOff.push(task)
        ended.add(ordinal)
      }
      const isUntold = untoldReuse.get(ordinal)?.has(task.id) === true
      if (task.status === entry.status && !isUntold) return
      if (task.isTerminal && !isUntold) ended.add(ordinal)
      const before = told.get(ordinal)?.get(task.id)
      const isTold = before?.status === task.status && before.seq > task.seq
      if (isUntold || !isTold) this.changed.push(task)
    })
    yield
    for (const { id, status } of deletedWithParents(entries)) {
      this.deleted.push({ id, graph })
      if (!isTerminal(status)) ended.add(ordinal) // with it, the graph may have ended just now
    }
    if (isGone && entries.some(({ graph_id }) => graph_id !== undefined)) this.gone.push(graph)
    return isGone ? undefined : graph
  }
}

/** Whether its attempt was being cancelled in another service. */
const isToKillRemotely = ({ status, handle_id }: StoredTask) => status === 'cancelling' && handle_id !== undefined

/** Whether the end of its parent cancelled it while its attempt went on in another service. */
const isEndedElsewhere = (entry: StoredTask, task: Task) => goesOnElsewhere(entry) && task.isTerminal

/** Whether its attempt continues in another service and must be followed, even if the task is deleted. */
const goesOnElsewhere = ({ status, handle_id }: StoredTask) =>
  (status === 'running' || status === 'pending') && handle_id !== undefined

/** Whether the service carried out an attempt itself when it ended. Attempts in other services go on. */
const isCutOff = ({ status, run_status, deleted, handle_id, for_each, tasks, fan_out }: StoredTask): boolean =>
  status === 'running' &&
  run_status === 'running' &&
  !deleted &&
  handle_id === undefined &&
  !hasChildren({ for_each, tasks }) &&
  fan_out === undefined

/** The entry of a task that failed with its attempt. The last known time is that of its end. */
function failedEntry(entry: StoredTask, { code, message }: Failure): StoredTask {
  const { process: _, attempts, attempt = 1, updated_at: finished_at, attempt_started_at, ...rest } = entry
  const record = {
    attempt,
    ...(attempt_started_at !== undefined && { started_at: isoTime(attempt_started_at) }),
    ...(finished_at !== undefined && { finished_at: isoTime(finished_at) }),
    error: message,
    code,
  }
  return {
    ...rest,
    ...{ attempt, status: 'failed', run_status: 'failed', error: message },
    ...{ updated_at: finished_at, attempt_started_at, finished_at, failure: { code, message } },
    ...(attempts != null && { attempts: [...withAttempt(attempts, record)] }),
  } as StoredTask
}

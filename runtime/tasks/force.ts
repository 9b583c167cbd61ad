/**
 * Ending a launch by force: when its launcher does not end the task, does not start it, or is dead.
 *
 * A living launcher ends a task better than we can: it is the parent of every orphan. If it is late, both are killed.
 * If it is dead, the fork server is the parent, as long as that lives. Besides that two traces remain: the cgroup of
 * the task, and the mark in the environment of its processes.
 *
 * A launcher that has not begun, because it or the fork server hangs, may begin later. To keep it from that the task
 * gets its outcome now: no launcher starts a task that has one (task-dir.c). A launcher that checked before that shows
 * the mark of the task, so it is killed by the mark, and what it wrote takes the place of our outcome and counts.
 */
import { closeSync, constants, linkSync, openSync, unlinkSync, writeSync } from 'node:fs'
import { constants as system } from 'node:os'
import { join } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { signalIf } from '../../shared/process/pidfd.ts'
import { carriesMark, lookForMarks, type Marked } from '../../shared/process/processes.ts'
import { TASK_MARK } from '../../shared/request/task-mark.ts'
import type { TaskCgroups } from '../host/task-cgroups.ts'
import { removeAbandonedCgroups } from '../launch/abandoned-cgroups.ts'
import { UNBEGUN_STEP } from '../launch/faults.ts'
import type { Reason } from '../launch/outcome.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Ground } from './context.ts'

/** Milliseconds between two searches for marks: while killed processes end, and while others start. */
const LOOK_MS = 5
const STARTING_LOOK_MS = 25

/** Milliseconds after which a killed process that is still there hangs in the kernel and cannot be killed. */
const HOPELESS_MS = 5_000

/** Milliseconds that a program may take to start. Until then a process without environment may belong to the task. */
const STARTING_MS = 1_000

type ForceContext = Pick<Ground, 'records' | 'cgroups' | 'log'>

export class Force {
  readonly #context: ForceContext
  readonly #serviceId: string

  /** `serviceId` distinguishes our tasks from those of other services on this machine. */
  constructor(context: ForceContext, serviceId: string) {
    this.#context = context
    this.#serviceId = serviceId
  }

  /** Ends what a task has left behind whose launcher is gone. Never rejects. */
  async endWhatIsLeft({ task_id }: LiveTask): Promise<void> {
    const { cgroups, log } = this.#context
    if (cgroups !== undefined) await endCgroup(cgroups, task_id, log)
    const isEnded = await endMarked(this.markOf(task_id))
    // The launcher, which carries the mark, may have made the cgroup after that was ended.
    const isCgroupEnded = cgroups === undefined || (await endCgroup(cgroups, task_id, log))
    if (isEnded && isCgroupEnded) return
    log.error('processes of a task whose launcher is gone cannot be killed', { task_id })
  }

  /** The mark of a task. Tasks of other services on this machine may have the same id. */
  markOf(taskId: string): string {
    return `${this.#serviceId}:${taskId}`
  }

  /** Keeps a task from ever starting whose launcher has not begun. Throws. */
  forestall(task: LiveTask): void {
    const { records, log } = this.#context
    forestall(records.dirOf(task).task_dir, task.row.kill_requested_at === null ? 'none' : 'kill', log)
  }
}

const { O_CREAT, O_NOFOLLOW, O_TRUNC, O_WRONLY } = constants

/** The outcome of a task that was not started (outcome.h); `reason` says why it is not to be. */
const unstartedOutcome = (reason: Reason): string =>
  [
    'version=1',
    'how=launch_failed',
    `step=${UNBEGUN_STEP}`,
    `errno=${system.errno.ETIMEDOUT}`,
    `reason=${reason}`,
    `finished_ms=${Date.now()}`,
    'duration_ms=0',
    'leftovers_killed=0',
    'leftovers_alive=0',
    'end=1\n',
  ].join('\n')

/**
 * Keeps a task from ever starting whose launcher has not begun. An existing outcome stays, and a task without a
 * directory does not start anyway. Throws when no outcome can be written.
 */
export function forestall(taskDir: string, reason: Reason, log: Log): void {
  const draft = join(taskDir, 'outcome.service')
  let fd: number
  try {
    fd = openSync(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o600)
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes(systemCodeOf(error) ?? '')) return
    throw error
  }
  try {
    writeSync(fd, unstartedOutcome(reason))
  } catch (error) {
    // An empty file of that name is enough to keep the task from starting.
    log.warn('cannot write why a task is not started', { cause: messageOf(error) })
  } finally {
    closeSync(fd)
  }
  try {
    linkSync(draft, join(taskDir, 'outcome'))
  } catch (error) {
    if (systemCodeOf(error) !== 'EEXIST') throw error
  } finally {
    unlinkSync(draft)
  }
}

/** Kills the processes that carry `mark` until there are none. False when some would not go. */
export async function endMarked(
  mark: string,
  { startingMs = STARTING_MS, hopelessMs = HOPELESS_MS } = {},
): Promise<boolean> {
  const start = performance.now()
  // The service may have been stalled before the first search, so hopelessness counts from the first kill.
  let firstKill: number | undefined
  for (;;) {
    const { byValue, bare } = await nextSearch()
    const marked = byValue.get(mark) ?? []
    const now = performance.now()
    if (marked.length === 0 && (bare.length === 0 || now - start > startingMs)) return true
    if (marked.length > 0 && firstKill !== undefined && now - firstKill > hopelessMs) return false
    for (const pid of marked) killMarked(pid, mark)
    if (marked.length > 0) firstKill ??= performance.now()
    else await Bun.sleep(STARTING_LOOK_MS)
  }
}

let comingSearch: Promise<Marked> | undefined
let lastSearchAt = Number.NEGATIVE_INFINITY

/** All tasks share a search: after many launchers died at once, one search for each would hold up everything else. */
function nextSearch(): Promise<Marked> {
  comingSearch ??= Bun.sleep(Math.max(0, lastSearchAt + LOOK_MS - performance.now())).then(() => {
    comingSearch = undefined
    const found = lookForMarks(TASK_MARK)
    lastSearchAt = performance.now()
    return found
  })
  return comingSearch
}

/** Checks the mark once more: the search took a while, and the pid may belong to another process by now. */
function killMarked(pid: number, mark: string): void {
  try {
    signalIf(() => carriesMark(pid, `${TASK_MARK}=${mark}\0`), pid, 'SIGKILL')
  } catch {
    // ended just now, or of another user
  }
}

const CANNOT_BE_ENDED = 'the control group of a task that does not run cannot be ended'

/** Ends the cgroup of a task with all that is in it. False, and logged, where that is not possible. Never rejects. */
export async function endCgroup(cgroups: Pick<TaskCgroups, 'end'>, task_id: string, log: Log): Promise<boolean> {
  try {
    if (await cgroups.end(task_id)) return true
    log.error(CANNOT_BE_ENDED, { task_id })
  } catch (error) {
    // A task that may write to its cgroup can make it unreadable.
    log.error(CANNOT_BE_ENDED, { task_id, cause: messageOf(error) })
  }
  return false
}

/**
 * Ends the cgroups that an earlier service left: launchers that were killed could not remove them. Never rejects: a
 * cgroup that stays is no reason not to start.
 */
export async function endLeftCgroups(
  cgroups: Pick<TaskCgroups, 'end' | 'taskIds'>,
  isInFlight: (taskId: string) => boolean,
  log: Log,
): Promise<void> {
  let taskIds: string[] = []
  try {
    taskIds = cgroups.taskIds()
  } catch (error) {
    log.error('the control groups of tasks cannot be listed', { cause: messageOf(error) })
  }
  for (const taskId of taskIds) if (!isInFlight(taskId)) await endCgroup(cgroups, taskId, log)
}

/** Removes the empty cgroups of services that are gone for ever. Logs its end at level debug. Never rejects. */
export async function sweepAbandonedCgroups(cgroups: TaskCgroups, log: Log): Promise<void> {
  try {
    const { removed, unanswered } = await removeAbandonedCgroups(cgroups)
    if (unanswered.length > 0)
      log.warn('control groups stay: the file system of their service does not answer', { groups: unanswered })
    if (removed > 0) log.info('control groups of services that are gone removed', { services: removed })
    log.debug('control groups of other services checked')
  } catch (error) {
    log.warn('control groups of services that are gone cannot be removed', { cause: messageOf(error) })
  }
}

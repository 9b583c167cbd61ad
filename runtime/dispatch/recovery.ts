/**
 * What a start finds: tasks that wait, run, have ended, or are gone.
 *
 * Tasks outlive their service. A launcher that lives is known by the lock it holds, one that is done by its outcome,
 * which counts whatever happened since, a reboot too. With neither, the task is lost. One exception: a task that was about
 * to be launched, never started, and the machine has not been rebooted since, waits again as if nothing had happened; one
 * that was asked to end before it started has ended.
 */

import { messageOf } from '../../shared/errors.ts'
import { isoTime } from '../../shared/iso-time.ts'
import type { Log } from '../../shared/log.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { insufficientResources } from '../ledger/shortfall.ts'
import type { NewEvent } from '../store/events.ts'
import type { LiveTask, TaskStore } from '../store/task-store.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Launches } from './launches.ts'

export interface RecoveryOptions {
  readonly store: TaskStore
  readonly ledger: Ledger
  readonly dispatcher: Dispatcher
  readonly launches: Launches
  readonly bootId: string
  readonly log: Log
}

/** What was found, for the log. */
export interface Recovered {
  waiting: number
  running: number
  ended: number
}

/** Takes up the tasks of an earlier service. Starts none of them: that is `startWhatFits`. */
export function recoverTasks(options: RecoveryOptions): Recovered {
  const found: Recovered = { waiting: 0, running: 0, ended: 0 }
  for (const task of [...options.store.live]) {
    found[takeUpSafely(options, task)]++
  }
  return found
}

/** A task that cannot be taken up must not keep the others, and the service, from going on. */
function takeUpSafely(options: RecoveryOptions, task: LiveTask): keyof Recovered {
  try {
    return task.row.launch_boot_id === null ? waitAgain(options, task) : takeUp(options, task)
  } catch (error) {
    const cause = messageOf(error)
    options.log.error('a task of an earlier service cannot be taken up', { task_id: task.task_id, cause })
    options.dispatcher.giveUp(task, `the task could not be taken up after a restart: ${cause}`)
    return 'ended'
  }
}

/** A task whose turn had not come. It may be that it never comes: the capacity may have become smaller. */
function waitAgain({ ledger, dispatcher, store }: RecoveryOptions, task: LiveTask): keyof Recovered {
  const { reserved_at, released_at } = task.row
  // The machine had refused its launch: it waited with its place until the earlier service ended.
  if (reserved_at !== null && released_at === null) {
    store.note(task, { patch: { released_at: Date.now() }, events: [notStarted(task)] })
  }
  if (task.row.kill_requested_at !== null) {
    dispatcher.endKilled(task)
    return 'ended'
  }
  const shortfall = ledger.shortfallOf(task)
  if (shortfall === null) {
    dispatcher.add(task)
    return 'waiting'
  }
  dispatcher.giveUp(task, insufficientResources(shortfall).message)
  return 'ended'
}

function takeUp(options: RecoveryOptions, task: LiveTask): keyof Recovered {
  const { store, ledger, dispatcher, launches, bootId } = options
  const { tenant, reservation, task_id } = task
  // Before its outcome is looked for: whoever holds no lock writes none. Where it cannot be asked yet, it may live.
  const isLive = launches.isLive(task) ?? true
  const mayWait = task.row.launch_boot_id === bootId || task.row.kill_requested_at !== null
  if (!isLive && mayWait && !launches.hasBegun(task)) {
    store.note(task, { patch: { launch_boot_id: null, released_at: Date.now() }, events: [notStarted(task)] })
    return waitAgain(options, task)
  }
  const { reserved_at, updated_at } = task.row
  ledger.restore({ task_id, tenant, reservation, reserved_at: isoTime(reserved_at ?? updated_at) })
  store.note(task, { patch: {}, events: [recovered(isLive)] })
  dispatcher.adopt(task)
  if (isLive) return 'running'
  dispatcher.onLauncherGone(task_id)
  return 'ended'
}

const recovered = (isLive: boolean): NewEvent => ({
  event_type: 'recovered',
  message: isLive ? 'the service was restarted: the task runs on' : 'the service was restarted: the task is gone',
  data: { running: isLive },
})

const notStarted = ({ reservation }: LiveTask): NewEvent => ({
  event_type: 'resource_released',
  message: 'the service was restarted before the task was started',
  data: reservation,
})

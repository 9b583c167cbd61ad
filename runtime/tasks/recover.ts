/**
 * Recovers the tasks of an earlier service: they wait, run, have ended, or are gone.
 *
 * Tasks outlive their service. A living launcher is known by the lock it holds. A launcher that is done is known by its
 * outcome, which counts whatever has happened since, even a reboot. A task with neither is lost, with two exceptions.
 * If it was about to be launched, never started, and the machine has not been rebooted since, it waits again as if
 * nothing had happened. If it was killed before it started, it has ended.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { bootId } from '../../shared/process/processes.ts'
import { hasOpenedRules } from '../../shared/request/network-rules.ts'
import { secretFileOf } from '../../shared/request/secrets.ts'
import type { TaskRequest } from '../../shared/request/validate.ts'
import { isoTime } from '../../shared/text/iso-time.ts'
import { CERTIFICATES_FILE } from '../egress/authority.ts'
import { takeBackUnused } from '../files/handed-files.ts'
import { insufficientResources } from '../ledger/shortfall.ts'
import type { NewEvent } from '../store/events.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Context } from './context.ts'
import type { Dispatcher } from './dispatcher.ts'
import type { Ends } from './end.ts'
import { refusalOf } from './launch-refusal.ts'
import type { Networks } from './networks.ts'

type RecoveryContext = Context<'store' | 'ledger' | 'records' | 'log', 'launchRetryMs'> & {
  readonly dispatcher: Dispatcher
  readonly ends: Ends
  readonly networks: Networks
}

/** Numbers of recovered tasks, for the log. */
export interface Recovered {
  /** For their turn, or for another launch after the machine refused one. */
  waiting: number
  running: number
  ended: number
}

/** Takes up the tasks of an earlier service. Starts none of them: that is `startWhatFits`. */
export function recoverTasks(context: RecoveryContext): Recovered {
  const found: Recovered = { waiting: 0, running: 0, ended: 0 }
  const { store } = context
  const toRead = new Set([...store.liveWith('secrets'), ...store.liveWith('priority')])
  for (const task of [...store.live]) {
    found[safely(context, task, () => takeUp(context, task, toRead.has(task)))]++
  }
  return found
}

/** A task that cannot be taken up must not keep the others, and the service, from going on. */
function safely(context: RecoveryContext, task: LiveTask, work: () => keyof Recovered): keyof Recovered {
  try {
    return work()
  } catch (error) {
    const cause = messageOf(error)
    context.log.error('a task of an earlier service cannot be taken up', { task_id: task.task_id, cause })
    context.dispatcher.giveUp(task, `the task could not be taken up after a restart: ${cause}`)
    return 'ended'
  }
}

function takeUp(context: RecoveryContext, task: LiveTask, isRead: boolean): keyof Recovered {
  if (isRead) {
    const request = context.store.requestOf(task.task_id)
    task.secretFiles = secretFilesOf(request)
    task.priority = request.priority ?? 0
  }
  return task.row.launch_boot_id === null ? waitAgain(context, task) : takeUpLaunched(context, task)
}

function secretFilesOf({ secrets = {}, sandbox: { network } }: TaskRequest): readonly (readonly string[])[] {
  const files = Object.values(secrets).flatMap((use) => {
    const names = secretFileOf(use)
    return names === undefined ? [] : [names]
  })
  return typeof network === 'object' && hasOpenedRules(network) ? [...files, CERTIFICATES_FILE] : files
}

/** A task that waits for its turn, which may never come: the capacity may have become smaller. */
function waitAgain({ ledger, dispatcher, store, records, ends }: RecoveryContext, task: LiveTask): keyof Recovered {
  // The earlier service may have been about to launch it.
  ends.removeSecrets(task)
  takeBackUnused(records.dirOf(task)) // its user goes to other tasks while it waits
  const { reserved_at, released_at } = task.row
  // The machine had refused its launch, so it waited with a reservation until the earlier service ended.
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

/** A task whose launch has come to nothing. */
function putBack(context: RecoveryContext, task: LiveTask): keyof Recovered {
  context.records.remove(task) // no launcher starts a task that has an outcome
  context.store.note(task, { patch: { launch_boot_id: null, released_at: Date.now() }, events: [notStarted(task)] })
  return waitAgain(context, task)
}

function takeUpLaunched(context: RecoveryContext, task: LiveTask): keyof Recovered {
  const { store, ledger, dispatcher, records, networks } = context
  const { tenant, reservation, task_id } = task
  // Checked before the outcome: once the lock is free, no launcher writes one. If it cannot be checked, the launcher may live.
  const isAlive = records.isLauncherAlive(task) ?? true
  const mayWait = task.row.launch_boot_id === bootId() || task.row.kill_requested_at !== null
  if (!isAlive && mayWait && !records.hasBegun(task)) return putBack(context, task)
  const { reserved_at, updated_at } = task.row
  ledger.restore({ task_id, tenant, reservation, reserved_at: isoTime(reserved_at ?? updated_at) })
  const found = isAlive ? 'running' : wasRefused(context, task) ? 'waiting' : 'ended'
  networks.adopt(task)
  store.note(task, { patch: {}, events: [recovered(found)] })
  const flight = dispatcher.adopt(task, isAlive, () => safely(context, task, () => putBack(context, task)))
  if (task.row.kill_requested_at !== null) flight.sendKill()
  return found
}

/** Whether the machine refused the launch of a task under the earlier service, which did not live to try again. */
function wasRefused({ ends, config }: RecoveryContext, task: LiveTask): boolean {
  if (config.launchRetryMs === 0 || task.row.kill_requested_at !== null) return false
  try {
    const ending = ends.fromOutcome(task)
    return ending !== undefined && refusalOf(ending) !== undefined
  } catch {
    return false // the end of the task will say what cannot be read
  }
}

const FOUND: Readonly<Record<keyof Recovered, string>> = {
  waiting: 'the task waits for another launch',
  running: 'the task runs on',
  ended: 'the task is gone',
}

const recovered = (found: keyof Recovered): NewEvent => ({
  event_type: 'recovered',
  message: `the service was restarted: ${FOUND[found]}`,
  data: { running: found === 'running' },
})

const notStarted = ({ reservation }: LiveTask): NewEvent => ({
  event_type: 'resource_released',
  message: 'the service was restarted before the task was started',
  data: reservation,
})

/** Why a task waits. Pure. */
import { MAX_WAITING_GRAPHS, MAX_WAITING_TASKS, type Waiting } from '../../shared/contract/waiting.ts'
import { isoTime, MAX_TIME_MS } from '../../shared/text/iso-time.ts'
import { standingOf } from '../rules/conditions.ts'
import { nextBackoffMs } from '../rules/retry-rule.ts'
import { isApproval, shortMessage } from './approval.ts'
import { endOf } from './asked-end.ts'
import { earliestStart } from './delay.ts'
import type { Task } from './graph.ts'
import { heldBy, type PausedTypes, pauseText } from './pauses.ts'
import { looksOutside, takesSignal } from './wait.ts'

/** The state of the scheduler, for tasks that wait only for a slot. */
export interface SlotUse {
  readonly taken: number
  readonly count: number
  /** Why no task starts at all, as after a defect or while the disk is full; undefined otherwise. */
  readonly hold: string | undefined
  /** The pauses of types and of the service. */
  readonly paused: PausedTypes
}

/**
 * Why `task` waits. Undefined if it has ended or its attempt executes. If another service carries out the attempt, that
 * service knows more.
 */
export function waitingOf(task: Task, slots: SlotUse, now: number): Waiting | undefined {
  const { parent } = task.childOf ?? {}
  if (parent?.status === 'pending') return waitingOf(parent, slots, now) // after a retry
  if (task.status === 'pending')
    return (
      onGroup(task) ??
      onOthers(task) ??
      onDependencies(task) ??
      onDelay(task, now) ??
      onCaller(task) ??
      onSiblings(task) ??
      onPause(task, slots) ??
      onSlot(slots)
    )
  if (task.status !== 'running' || !task.rare.isBackingOff) return undefined
  const until = endOfBackoff(task, now)
  if (until === undefined) return onPause(task, slots) ?? onSlot(slots)
  const { attempt, usedAttempts } = task
  const { retry } = task.options
  const last = attempt + retry + 1 - usedAttempts
  return { reason: 'backoff', until: isoTime(until), detail: `attempt ${attempt + 1} of ${last} follows` }
}

/** The place that its graph waits for; undefined if it waits for none. */
function onGroup({ graph }: Task): Waiting | undefined {
  if (graph.waitsFor === undefined) return undefined
  const graphs = [...graph.waitsFor].slice(0, MAX_WAITING_GRAPHS).map(({ id }) => id)
  return { reason: 'group', group: graph.options.concurrency!.group, graphs }
}

/** A task of `on_end`, while others of its graph have not ended. */
const onOthers = ({ waitsForEnd }: Task): Waiting | undefined =>
  waitsForEnd ? { reason: 'dependencies', detail: 'all other tasks of its graph have to end first' } : undefined

/** The dependencies that `task` waits for; undefined if it waits for none. */
export function onDependencies(task: Task): Waiting | undefined {
  const { graph } = task
  const missing = graph.missing[task.position] ?? 0
  if (missing === 0) return undefined
  const tasks: string[] = []
  const count = graph.dependencyCount(task)
  for (let i = 0; i < count && tasks.length < MAX_WAITING_TASKS; i++) {
    const dependency = graph.dependency(task, i)
    if (isAwaited(task, dependency) && !tasks.includes(dependency.id)) tasks.push(dependency.id)
  }
  const isAll = tasks.length < MAX_WAITING_TASKS || missing <= MAX_WAITING_TASKS
  const verb = task.runIf === 'success' ? 'succeed' : 'end'
  return { reason: 'dependencies', tasks, ...(!isAll && { detail: `${missing} tasks have to ${verb} first` }) }
}

/** Whether the task still waits for `dependency`. True for a failed one until the task is skipped because of it. */
function isAwaited({ runIf }: Task, dependency: Task): boolean {
  const standing = standingOf(dependency)
  return standing === undefined || (runIf === 'success' && standing !== 'good' && standing !== 'neutral')
}

/** The time before which the task does not start; undefined once it has come. */
function onDelay(task: Task, now: number): Waiting | undefined {
  const until = earliestStart(task)
  return until !== undefined && until > now ? { reason: 'delay', until: isoTime(until) } : undefined
}

/** What a task waits for that a caller ends; undefined for one that was not asked for. */
export function onCaller(task: Task): Waiting | undefined {
  if (task.rare.asked_at === undefined) return undefined
  const until = endOf(task)
  const message = shortMessage(task)
  const reason = isApproval(task) ? 'approval' : looksOutside(task) ? 'answer' : takesSignal(task) ? 'signal' : 'delay'
  const { unmet } = task.rare
  const detail = message === undefined || unmet === undefined ? (message ?? unmet) : `${message}: ${unmet}`
  return {
    reason,
    ...(until !== undefined && until <= MAX_TIME_MS && { until: isoTime(until) }),
    ...(detail !== undefined && { detail }),
  }
}

/** A child that is not queued yet because of `max_parallel`. */
function onSiblings(task: Task): Waiting | undefined {
  const { childOf } = task
  if (childOf === undefined || !childOf.isHeldBack(task)) return undefined
  const { parent, active, members } = childOf
  const [one, many] = members === undefined ? ['child', 'children'] : ['element', 'elements']
  const running = active.size === 1 ? `1 ${one} of ${parent.id} runs` : `${active.size} ${many} of ${parent.id} run`
  return { reason: 'concurrency', detail: `${running} (max_parallel)` }
}

function onPause(task: Task, { paused }: SlotUse): Waiting | undefined {
  const held = heldBy(task, paused)
  return held && { reason: 'pause', detail: pauseText(held) }
}

function onSlot({ taken, count, hold }: SlotUse): Waiting {
  const detail = hold ?? `${taken} of ${count} slots are taken (--max-concurrency)`
  return { reason: 'concurrency', detail }
}

/** The end of the last attempt plus the backoff, in milliseconds since 1970. Undefined once that is over. */
export function endOfBackoff(task: Task, now: number): number | undefined {
  const until = Date.parse(task.rare.attempts?.at(-1)?.finished_at ?? '') + nextBackoffMs(task)
  return until > now ? until : undefined
}

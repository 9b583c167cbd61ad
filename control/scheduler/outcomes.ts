/**
 * Applies the outcome of an attempt to its task and to the dependents of the task.
 *
 * If retries are left, another attempt follows a failed one after a backoff. Any other outcome ends the task and
 * notifies its dependents. In a graph without rules, a success makes dependents ready, and any other end skips them. In
 * a graph with rules, each dependent decides by its rules (`conditions.ts`).
 */
import type { ApprovalResult } from '../../shared/contract/approval.ts'
import { CONDITION_NOT_MET, NO_DEPENDENCY_FAILED } from '../../shared/contract/run-if.ts'
import type { Log } from '../../shared/logs/log.ts'
import { decide, hasRule, type SkipStanding, STANDING_BITS, standingOf } from '../rules/conditions.ts'
import type { Failure } from '../rules/failure.ts'
import { isRetriedFor, nextBackoffMs } from '../rules/retry-rule.ts'
import { lossReasonOf, skipReason } from '../rules/transitions.ts'
import { rejection } from '../task/approval.ts'
import { type AttemptOutput, cancelled } from '../task/attempt-record.ts'
import type { Ending } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { Groups } from '../task/graph-groups.ts'
import type { TaskStore } from '../task/task-store.ts'
import type { Attempt, AttemptOutcome } from './attempt.ts'
import { ConditionQueue, type ConditionQueueOptions } from './condition-queue.ts'
import type { DueQueue } from './due-queue.ts'
import { EndedTasks } from './ended-tasks.ts'
import type { FanOuts } from './fan-outs.ts'
import { foldedFailures } from './folded-failures.ts'
import type { ReadyQueue } from './ready-queue.ts'
import type { SkipReport } from './skip-report.ts'

export interface OutcomesOptions {
  readonly store: TaskStore
  readonly log: Log
  /** Gets the tasks that may run. */
  readonly ready: Pick<ReadyQueue, 'push'>
  readonly backoffs: DueQueue<Task>
  readonly fanOuts: Pick<FanOuts, 'cancelled' | 'childEnded'>
  readonly inputs: ConditionQueueOptions['inputs']
  /** Knows why whole graphs are cancelled. */
  readonly groups: Pick<Groups, 'whyCancelled'>
  /** Called after the test of a condition. Its consequences are queued. */
  readonly onTested: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

export class Outcomes {
  readonly #store: TaskStore
  readonly #log: Log
  readonly #ready: Pick<ReadyQueue, 'push'>
  readonly #backoffs: DueQueue<Task>
  readonly #fanOuts: OutcomesOptions['fanOuts']
  readonly #groups: OutcomesOptions['groups']
  readonly #conditions: ConditionQueue
  readonly endedTasks = new EndedTasks((dependent, ended, report) => this.#tell(dependent, ended, report))

  constructor({ store, log, ready, backoffs, fanOuts, inputs, groups, onTested, onDefect }: OutcomesOptions) {
    this.#store = store
    this.#log = log
    this.#ready = ready
    this.#backoffs = backoffs
    this.#fanOuts = fanOuts
    this.#groups = groups
    this.#conditions = new ConditionQueue({
      ...{ inputs, onTested, onDefect },
      onMet: (task) => this.#conditionMet(task),
      onUnmet: (task, place) => this.#skip(task, `${CONDITION_NOT_MET}${place}`, 'neutral', undefined),
      onFault: (task, failure) => this.failWithoutAttempt(task, failure),
    })
  }

  /** Records that the condition was met. The task may wait for long, and its value may be gone after a restart. */
  #conditionMet(task: Task): void {
    this.#store.apply({ kind: 'condition-met', task, at: Date.now() })
    this.#ready.push(task)
  }

  /**
   * Ends a task whose condition cannot be tested, whose list is none, or that got no answer in time. Only a task that has
   * started has a failure in its record.
   */
  failWithoutAttempt(task: Task, failure: Failure): void {
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now() })
    this.failed(task, { failure, isFinal: true })
  }

  /** The next attempt fails before it starts. */
  missed(task: Task, failure: Failure): void {
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now(), isMissed: true })
    this.failed(task, { failure })
  }

  /** Ends a task that was not executed with the outcome of `source`. `result` is that of `source`. */
  reused(task: Task, source: Task, result: unknown): void {
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now() })
    const reusedFrom = source.rare.reused_from ?? { graph_id: source.graph.id, task_id: source.id }
    this.#end(task, { status: 'success', result, reusedFrom })
  }

  /** Ends a pending task that needs no attempt. */
  known(task: Task, result: unknown): void {
    this.#end(task, { status: 'success', result, inOneGo: true })
  }

  /** Ends an approval that was asked for. */
  answered(task: Task, answer: ApprovalResult): void {
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now() })
    if (answer.approved) this.#end(task, { status: 'success', result: answer })
    else this.failed(task, { failure: rejection(answer), result: answer, isFinal: true })
  }

  /** Ends a wait with the value of its signal, null without one. */
  signalled(task: Task, value: unknown): void {
    this.#store.apply({ kind: 'attempt-started', task, at: Date.now() })
    this.#end(task, { status: 'success', result: value })
  }

  take({ task, output }: Attempt, outcome: AttemptOutcome): void {
    switch (outcome.kind) {
      case 'success':
        this.#end(
          task,
          output === undefined
            ? { status: 'success', result: outcome.result }
            : { status: 'success', result: outcome.result, output },
        )
        break
      case 'stopped':
        this.#interrupted(
          task,
          'the attempt was interrupted by the stop of the service',
          task.rare.handle !== undefined,
        )
        break
      case 'unrecorded':
        this.#interrupted(
          task,
          'the attempt did not begin: it could not be put on record',
          task.rare.handle !== undefined,
        )
        break
      case 'failure':
        this.failed(task, outcome, output)
    }
  }

  #interrupted(task: Task, reason: string, goesOn: boolean): void {
    this.#store.apply({ kind: 'attempt-interrupted', task, at: Date.now(), reason, goesOn })
  }

  /** Schedules another attempt after a backoff, or ends the task as failed. */
  failed(task: Task, outcome: FailedAttempt, output?: AttemptOutput): void {
    const { failure, result } = outcome
    if (isRetried(task, outcome)) {
      this.#store.apply({ kind: 'attempt-failed', task, at: Date.now(), failure, ...present('output', output) })
      this.#backoffs.add(task, nextBackoffMs(task))
      const folded = foldedFailures(task.usedAttempts)
      if (folded === undefined) return
      this.#log.info('attempt failed, will be retried', {
        ...logFieldsOf(task),
        error: failure.message,
        attempts_left: attemptsLeft(task),
        ...(folded > 0 && { folded }),
      })
      return
    }
    const hadRetries = task.options.retry > 0 && attemptsLeft(task) <= 0
    const error = hadRetries ? `task failed after all retries: ${failure.message}` : failure.message
    const line = hadRetries ? 'task failed after all retries' : 'task failed'
    this.#log.warn(line, { ...logFieldsOf(task), code: failure.code, error: failure.message })
    this.#end(task, { status: 'failed', error, failure, ...present('result', result), ...present('output', output) })
  }

  /** Ends a task whose children have all ended. */
  fanOutEnded(task: Task, ending: Ending): void {
    if (ending.status === 'failed') {
      this.#log.warn('task failed', { ...logFieldsOf(task), code: ending.failure.code, error: ending.error })
    }
    if (ending.status === 'cancelled') this.cancelled(task)
    else this.#end(task, ending)
  }

  /** Ends a task as cancelled, for a `reason` if there is one. Adds the tasks that are skipped because of it to `report`. */
  cancelled(
    task: Task,
    {
      report,
      result,
      output,
      reason,
    }: {
      readonly report?: SkipReport | undefined
      readonly result?: unknown
      readonly output?: AttemptOutput | undefined
      readonly reason?: string | undefined
    } = {},
  ): void {
    const failure = cancelled(reason || this.#groups.whyCancelled(task.graph))
    const ending = { status: 'cancelled', error: failure.message, failure, ...present('result', result) } as const
    this.#end(task, { ...ending, ...present('output', output) }, report)
  }

  /** Queues a pending task without dependencies, or skips it because of its rule. */
  arrived(task: Task): void {
    if (task.atEnd !== undefined) return // `othersEnded` decides about it
    if (!hasRule(task.options)) this.#ready.push(task)
    else this.#decide(task)
  }

  /** Queues or skips a task that a patch added, or a retry made pending again, unless it must wait. Its graph has counted its dependencies. */
  revived(task: Task): void {
    const { graph, position } = task
    if (task.status !== 'pending' || task.isDeleted || task.atEnd !== undefined) return
    if (task.childOf !== undefined) return // its parent comes to it
    if (graph.hasRules) {
      this.#decide(task)
      return
    }
    const lost = graph.dependenciesOf(task).find(isLost)
    if (lost !== undefined) this.#skip(task, skipReason(lost.id, lossReasonOf(lost)), 'bad', undefined)
    else if (graph.missing[position] === 0 && graph.waitsFor === undefined) this.#ready.push(task)
  }

  #skip(task: Task, error: string, standing: SkipStanding, report: SkipReport | undefined): void {
    report?.add(task)
    this.#end(task, { status: 'skipped', error, ...(standing !== 'bad' && { standing }) }, report)
  }

  #end(task: Task, ending: Ending, report?: SkipReport): void {
    this.#store.apply({ kind: 'ended', task, at: Date.now(), ending })
    if (task.childOf !== undefined) this.#fanOuts.childEnded(task)
    if (task.fanOut !== undefined && task.fanOut.open > 0) this.#fanOuts.cancelled(task) // it did not begin again
    this.tellDependents(task, report)
    if (task.atEnd === undefined) this.othersEnded(task.graph)
    if (task.graph.live === 0) this.graphEnded(task.graph)
  }

  /** Lets the tasks of `on_end` decide, once all others have ended. A graph that waits for its place gets it first. */
  othersEnded(graph: Graph): void {
    if (graph.atEnd === undefined || graph.isAtEnd || graph.waitsFor !== undefined || !graph.haveOthersEnded) return
    graph.isAtEnd = true
    for (const task of graph.atEnd) {
      if (task.status !== 'pending' || task.isDeleted) continue
      if (wasConditionMet(task)) this.#ready.push(task)
      else this.#conditions.push(task)
    }
  }

  /**
   * To be called once for each task that has ended, or was deleted before it ran. Nothing depends on a child of a plain task.
   * A child whose element has not begun is told of when it does.
   */
  tellDependents(task: Task, report?: SkipReport): void {
    const { childOf, graph, status } = task
    if (childOf?.members === undefined ? childOf !== undefined : !childOf.isReached(task)) return
    if (status === 'success' && !graph.hasRules) this.#readyDependents(task)
    else this.endedTasks.add(task, report)
  }

  /**
   * Notifies the pending task `dependent` of the end of `ended`. In a graph without rules, only of ends without
   * success.
   */
  #tell(dependent: Task, ended: Task, report: SkipReport | undefined): void {
    const { graph, position, childOf } = dependent
    if (childOf?.stops(dependent)) return // it is about to be cancelled or deleted
    if (!graph.hasRules) {
      this.#skip(dependent, skipReason(ended.id, lossReasonOf(ended)), 'bad', report)
      return
    }
    graph.standings[position]! |= STANDING_BITS[standingOf(ended)!]
    graph.missing[position]!--
    this.#decide(dependent, ended, report)
  }

  /** Queues or skips a task of a graph with rules, unless it must wait. `last` is the dependency that ended last. */
  #decide(task: Task, last?: Task, report?: SkipReport): void {
    const { graph, position, runIf } = task
    const decision = decide(runIf, graph.standings[position]!, graph.missing[position] === 0)
    if (decision === 'run') {
      if (graph.waitsFor !== undefined) return // it is among the roots of the graph when that starts
      if (task.options.when === undefined || wasConditionMet(task)) this.#ready.push(task)
      else this.#conditions.push(task)
    } else if (decision !== 'wait') this.#skip(task, skipText(task, decision, last), decision, report)
  }

  #readyDependents(task: Task): void {
    const { graph } = task
    const count = graph.dependentCount(task)
    for (let i = 0; i < count; i++) {
      const dependent = graph.dependent(task, i)
      if (--graph.missing[dependent.position]! > 0) continue
      if (dependent.status === 'pending' && !dependent.isDeleted) this.#ready.push(dependent)
    }
  }

  /** Called when the last task of `graph` has ended or was deleted. */
  graphEnded(graph: Graph): void {
    graph.releaseEdges()
    const fields = { trace_id: graph.traceId, graph_id: graph.id, tasks: graph.tasks.length }
    this.#log.info('graph ended', { ...fields, duration_ms: Date.now() - graph.createdAt })
  }
}

/** Whether the condition of `task` was met. A task that has started met its condition, unless it was retried since. */
const wasConditionMet = ({ rare, startedAt }: Task): boolean =>
  rare.condition_met || (startedAt !== undefined && rare.retried === undefined)

/** Whether a task that depends on `task` can never run. */
const isLost = (task: Task): boolean => task.neverRuns || (task.isTerminal && task.status !== 'success')

/** The error of a skipped task in a graph with rules. `last` is the dependency that ended last, if that is known. */
function skipText(task: Task, standing: SkipStanding, last: Task | undefined): string {
  const { graph, runIf } = task
  if (runIf === 'success') {
    if (standing === 'neutral' || last !== undefined) {
      const cause = standing === 'neutral' ? graph.dependency(task, 0) : last!
      return skipReason(cause.id, lossReasonOf(cause))
    }
  } else if (standing === 'neutral') return NO_DEPENDENCY_FAILED
  let i = 0
  while (standingOf(graph.dependency(task, i)) !== standing) i++
  const cause = graph.dependency(task, i)
  return skipReason(cause.id, lossReasonOf(cause))
}

/** The failure of an attempt. With `isFinal`, further attempts would fail too. */
export type FailedAttempt = Pick<Extract<AttemptOutcome, { kind: 'failure' }>, 'failure' | 'result' | 'isFinal'>

/** Whether another attempt follows a failed attempt of `task`. */
export const isRetried = (task: Task, { isFinal = false, failure }: FailedAttempt): boolean =>
  !isFinal && attemptsLeft(task) > 0 && isRetriedFor(task, failure.code)

/** Number of attempts left. */
const attemptsLeft = (task: Task): number => task.options.retry + 1 - task.usedAttempts

/** The fields that identify an attempt in the log. */
export const logFieldsOf = (task: Task) => ({
  trace_id: task.graph.traceId,
  graph_id: task.graph.id,
  task_id: task.id,
  attempt: task.attempt,
})

const present = <N extends string, V>(name: N, value: V | undefined) =>
  (value === undefined ? {} : { [name]: value }) as { readonly [K in N]?: V }

/**
 * Runs tasks with `for_each`, and groups, by their children.
 *
 * Such a task holds no slot. When it may run, its list is determined and written to the journal; then its children exist, and
 * are queued like other tasks, those of at most `max_parallel` elements at a time. Of an element of a group only the children
 * without dependencies are; the others follow like the tasks of a graph. Once all children have ended, the task ends. Whatever
 * concerns thousands of children takes a step for each of them: `step`.
 */
import { messageOf, ServiceError } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { nextTurn, runCooperatively, SLICE_MS } from '../../shared/process/steps.ts'
import { copyFailure } from '../executors/plain-copies.ts'
import type { Keeper } from '../log/keeper.ts'
import { storageUnavailable } from '../log/storage-errors.ts'
import type { Failure } from '../rules/failure.ts'
import { isReferenceToList } from '../rules/fan-out-rule.ts'
import { ResultFile } from '../rules/result-file.ts'
import { cancelled } from '../task/attempt-record.ts'
import type { Ending } from '../task/change.ts'
import { FanOut } from '../task/fan-out.ts'
import { fanOutFailure } from '../task/fan-out-outcome.ts'
import type { Task } from '../task/graph.ts'
import { newChildren } from '../task/new-children.ts'
import type { Retention } from '../task/retention.ts'
import type { TaskStore } from '../task/task-store.ts'
import { type FanOutListOptions, fanOutList } from './fan-out-list.ts'
import { fanOutResult } from './fan-out-result.ts'
import { Fifo } from './fifo.ts'
import type { GraphRoom } from './graph-room.ts'

/** Milliseconds before a journal that did not take a list is asked again. */
const RETRY_MS = 500

export interface FanOutsOptions extends Pick<FanOutListOptions, 'inputs' | 'maxFanOut'> {
  readonly keeper: Pick<Keeper, 'keepFanOut' | 'results'>
  /** Makes room for children. */
  readonly retention: Pick<Retention, 'roomFor'>
  /** Bounds what the results of a graph take. */
  readonly room: GraphRoom
  readonly store: TaskStore
  readonly log: Log
  /** Whether `task` is paused: then it does not begin before it is pushed again. */
  readonly parks: (task: Task) => boolean
  /** A child without dependencies may run. */
  readonly onChild: (child: Task) => void
  /** A child ended, or was deleted, before its element began, as in an earlier run of the service: others may wait for it. */
  readonly onEndedBefore: (child: Task) => void
  /** Cancels a child, for a reason that completes the text of the cancel if it is not empty. */
  readonly cancel: (child: Task, reason: string) => void
  /** Deletes the record of a child. */
  readonly delete: (child: Task) => void
  /** The list of a task is none, or too long. */
  readonly onFault: (task: Task, failure: Failure) => void
  /** All children of a task have ended. */
  readonly onEnd: (task: Task, ending: Ending) => void
  /** There is more to do: `step` should be called. */
  readonly wake: () => void
  /** Called with an error that is a defect of the service. */
  readonly onDefect: (error: unknown) => void
}

export class FanOuts {
  readonly #options: FanOutsOptions
  /** Tasks whose lists are to be determined. */
  readonly #ready = new Fifo<Task>()
  #isReading = false
  /** Tasks whose children are about to exist. */
  readonly #beginning = new Set<Task>()
  /** Children that are about to exist. */
  #expected = 0
  /** Fan-outs with something to do. */
  readonly #work = new Fifo<FanOut<Task>>()
  #holds = 0
  #isStopped = false

  constructor(options: FanOutsOptions) {
    this.#options = options
  }

  /** Runs a pending task, which may have children: from an earlier run of the service, or from before a retry. */
  push(task: Task): void {
    if (task.fanOut !== undefined) {
      if (task.status === 'pending') this.#begin(task, task.fanOut, []) // otherwise it was begun to be cancelled
      return
    }
    this.#ready.push(task)
    if (this.#isReading) return
    this.#isReading = true
    this.#readLists().catch((error) => this.#options.onDefect(error))
  }

  /** Whether the list of `task`, which is pending, is being written. */
  isBeginning(task: Task): boolean {
    return this.#beginning.has(task)
  }

  /** Determines no list any more, and begins no fan-out. */
  stop(): void {
    this.#isStopped = true
  }

  /** Takes no step until `release` is called as often as this. */
  hold(): void {
    this.#holds++
  }

  release(): void {
    this.#holds--
  }

  /** One list after the other, in slices: a list may be in a file. */
  async #readLists(): Promise<void> {
    let sliceEnd = performance.now() + SLICE_MS
    for (let task = this.#ready.shift(); task !== undefined; task = this.#ready.shift()) {
      if (!this.#isWanted(task)) continue
      const list = await this.#listOf(task)
      if (this.#isWanted(task) && !this.#options.parks(task)) {
        if ('fault' in list) this.#options.onFault(task, list.fault)
        else this.#fanOut(task, list.items).catch((error) => this.#options.onDefect(error))
        this.#options.wake()
      }
      if (performance.now() < sliceEnd) continue
      await nextTurn()
      sliceEnd = performance.now() + SLICE_MS
    }
    this.#isReading = false
  }

  /**
   * The elements for which `task`, which has ended, has children. Writes them to the journal again, which may have dropped them.
   * Throws 409 if they are no longer known, and 503 if they cannot be written.
   */
  async listAgain(task: Task): Promise<readonly unknown[]> {
    const list = await this.#listOf(task, () => undefined)
    const why = 'fault' in list ? list.fault.message : 'it has another length'
    if ('fault' in list || list.items.length !== task.fanOut!.elements)
      throw new ServiceError(409, `task ${task.id} cannot run again for its list: ${why}`)
    const { items } = list
    try {
      if (isReferenceToList(task.options.for_each))
        await this.#options.keeper.keepFanOut(task, { count: items.length, items })
    } catch (error) {
      throw storageUnavailable(error)
    }
    return items
  }

  #isWanted = (task: Task): boolean => task.status === 'pending' && !task.isDeleted && !this.#isStopped

  async #listOf(
    task: Task,
    roomFor = (count: number) => this.#options.retention.roomFor(this.#expected + count),
  ): Promise<{ readonly items: readonly unknown[] } | { readonly fault: Failure }> {
    try {
      return { items: await fanOutList(task, { ...this.#options, roomFor }) }
    } catch (error) {
      const { failure, isBroken } = copyFailure(error)
      if (isBroken) throw error
      return { fault: failure }
    }
  }

  /** The children exist once their list is on disk: in the same turn of the event loop, so that no snapshot comes between. */
  async #fanOut(task: Task, items: readonly unknown[]): Promise<void> {
    const fanOut: FanOut<Task> = new FanOut(task, items, items.length)
    const { count } = fanOut
    this.#expected += count
    this.#beginning.add(task)
    const children = await runCooperatively(newChildren(fanOut))
    if (count > 0) await this.#record(task, items)
    this.#expected -= count
    this.#beginning.delete(task)
    if (this.#isWanted(task)) this.#begin(task, fanOut, children)
  }

  /** Resolves when the list is on disk, or the task is not to run any more. */
  async #record(task: Task, items: readonly unknown[]): Promise<void> {
    const { keeper, log } = this.#options
    const itemsToKeep = isReferenceToList(task.options.for_each) ? items : undefined
    for (let isFirst = true; this.#isWanted(task); isFirst = false) {
      try {
        await keeper.keepFanOut(task, { count: items.length, items: itemsToKeep })
        return
      } catch (error) {
        if (isFirst) log.warn('the list of a task cannot be written; it will be tried again', fieldsOf(task, error))
        await Bun.sleep(RETRY_MS)
      }
    }
  }

  #begin(task: Task, fanOut: FanOut<Task>, children: readonly Task[]): void {
    this.#options.store.apply({ kind: 'fanned-out', task, at: Date.now(), fanOut, children })
    for (let i = 0; i < fanOut.count && children.length === 0; i++) stopIfFailed(fanOut, fanOut.child(i))
    this.#queue(fanOut)
    this.#options.wake()
  }

  /** Cancels the children of `task`, which is being cancelled or has ended without them, in steps. */
  cancelled({ fanOut }: Task): void {
    if (fanOut === undefined) return
    fanOut.stop = ''
    fanOut.stopped = 0
    this.#queue(fanOut)
  }

  /** Deletes the children of `task`, whose record was deleted, in steps. */
  deleted({ fanOut }: Task): void {
    if (fanOut !== undefined) this.#queue(fanOut)
  }

  /** To be called once for each child that has ended, or was deleted before it ran. */
  childEnded(child: Task): void {
    const fanOut = child.childOf!
    fanOut.ended(child)
    stopIfFailed(fanOut, child)
    this.#queue(fanOut)
  }

  #queue(fanOut: FanOut<Task>): void {
    if (fanOut.isQueued) return
    fanOut.isQueued = true
    this.#work.push(fanOut)
  }

  /** Does a little for one fan-out; false when nothing is left to do. */
  step(): boolean {
    const fanOut = this.#work.peek()
    if (fanOut === undefined || this.#holds > 0) return false
    if (this.#advance(fanOut)) return true
    this.#work.shift()
    fanOut.isQueued = false
    return true
  }

  /** False if nothing can be done before a child ends. */
  #advance(fanOut: FanOut<Task>): boolean {
    const { parent, count } = fanOut
    if (parent.isDeleted && fanOut.deleted < count) {
      const child = fanOut.child(fanOut.deleted++)
      if (child.rare.isBackingOff && fanOut.stops(child)) this.#options.cancel(child, '') // without its record it would go on
      if (!child.isDeleted) this.#options.delete(child)
      return true
    }
    if (parent.status === 'pending') return false
    if (fanOut.stop !== undefined && fanOut.stopped < count) {
      const child = fanOut.child(fanOut.stopped++)
      if (!child.isTerminal && !child.isDeleted && fanOut.stops(child)) this.#options.cancel(child, fanOut.stop)
      return true
    }
    if (parent.isTerminal) return false
    const isAmid = fanOut.next % fanOut.width > 0 // the other children of the element are among those that may run
    if (fanOut.next < count && (isAmid || fanOut.active.size < fanOut.maxParallel)) {
      const child = fanOut.child(fanOut.next++)
      if (child.isTerminal || child.neverRuns) {
        this.#options.onEndedBefore(child)
        return true
      }
      fanOut.active.add(fanOut.indexOf(child))
      if (child.status === 'pending' && !child.isDeleted && parent.graph.dependencyCount(child) === 0)
        this.#options.onChild(child)
      return true
    }
    if (fanOut.open === 0 && !fanOut.isEnding) {
      fanOut.isEnding = true
      this.#end(fanOut).catch((error) => this.#options.onDefect(error))
    }
    return false
  }

  /** The result is made again if children are deleted while it is made: it must agree with the outcome. */
  async #end(fanOut: FanOut<Task>): Promise<void> {
    const { parent } = fanOut
    const { keeper, room } = this.#options
    const files: ResultFile[] = []
    let failure: Failure | undefined
    let made: Awaited<ReturnType<typeof fanOutResult>> | undefined
    do {
      if (made !== undefined && 'value' in made) made.release()
      failure = fanOutFailure(fanOut)
      made = parent.status === 'running' ? await fanOutResult(fanOut, keeper.results, room) : undefined
      if (made !== undefined && 'value' in made && made.value instanceof ResultFile) files.push(made.value)
    } while (parent.status === 'running' && !parent.isDeleted && fanOutFailure(fanOut)?.message !== failure?.message)
    let kept: unknown
    if (!parent.isTerminal) {
      const ending = endingOf(fanOut, failure, made)
      kept = ending.result
      this.#options.onEnd(parent, ending)
      this.#options.wake()
    }
    if (made !== undefined && 'value' in made) made.release()
    for (const file of files) if (file !== kept) this.#options.store.onResultDropped(file)
  }
}

/** With `fail_fast`, the failure of a child ends all that has not started. */
function stopIfFailed(fanOut: FanOut<Task>, { id, status, continuesOnError }: Task): void {
  if (status !== 'failed' || continuesOnError) return
  if (fanOut.parent.options.fail_fast === true) fanOut.stop ??= `${id} failed (fail_fast)`
}

function endingOf(
  { parent }: FanOut<Task>,
  failure: Failure | undefined,
  made: Awaited<ReturnType<typeof fanOutResult>> | undefined,
): Exclude<Ending, { readonly status: 'skipped' }> {
  if (parent.status === 'cancelling' || made === undefined) {
    const given = cancelled()
    return { status: 'cancelled', failure: given, error: given.message }
  }
  if (failure !== undefined) {
    const result = 'value' in made ? { result: made.value } : {}
    return { status: 'failed', failure, error: failure.message, ...result }
  }
  if ('value' in made) return { status: 'success', result: made.value }
  const fault: Failure = 'lost' in made ? { code: 'internal', message: made.lost } : made.tooLarge
  return { status: 'failed', failure: fault, error: fault.message }
}

const fieldsOf = ({ id, graph }: Task, error: unknown) => ({
  ...{ trace_id: graph.traceId, graph_id: graph.id, task_id: id, cause: messageOf(error) },
})

/**
 * Killing a task: a caller asks for its end, and its launcher is told, again and again until the task has ended.
 *
 * A kill may meet its task in any phase. It is written down before it is carried out, and it waits for a launch that is
 * under way, so that the events come in their order.
 */
import { nextTurn } from '../../shared/process/steps.ts'
import type { LiveTask } from '../store/live-task.ts'
import type { Ground } from './context.ts'
import type { Dispatcher } from './dispatcher.ts'
import { killRequested } from './ending.ts'
import type { InFlight } from './flight.ts'
import { ensureOwner, type OwnersCall } from './owner.ts'

/** Milliseconds that a kill waits for a launch under way, and for the end of a task that is ending. */
const SETTLE_MS = 1_000

type KillsContext = Pick<Ground, 'store' | 'queue' | 'log'> & {
  readonly inFlight: InFlight
  readonly dispatcher: Dispatcher
}

/** The kills that callers ask for. */
export class Kills {
  readonly #context: KillsContext
  /** Kills that are being written down, by task id. A second caller waits for the same. */
  readonly #underWay = new Map<string, Promise<void>>()

  constructor(context: KillsContext) {
    this.#context = context
  }

  /**
   * Resolves once the kill is durable, or, on a failing disk, once the launcher has received it. Throws a `Refusal`
   * (403), or 503 when neither is possible, and then nothing has changed. An ended task stays as it is.
   */
  async kill(call: OwnersCall): Promise<void> {
    const { taskId, traceId } = call
    const { store, queue, inFlight } = this.#context
    const task = store.liveTask(taskId)
    ensureOwner('kill', (task?.row ?? store.get(taskId))?.owner ?? null, call)
    if (task === undefined) return
    // The task was just accepted, and will be in the queue or in flight in a moment.
    if (!task.isEnding && !queue.has(taskId) && !inFlight.has(taskId)) await nextTurn()
    let kill = this.#underWay.get(taskId)
    if (kill === undefined) {
      kill = this.#kill(task, traceId).finally(() => this.#underWay.delete(taskId))
      this.#underWay.set(taskId, kill)
    }
    await kill
  }

  async #kill(task: LiveTask, traceId: string): Promise<void> {
    const { queue, dispatcher, inFlight } = this.#context
    const launchBefore = inFlight.get(task.task_id)?.settled
    await within(SETTLE_MS, launchBefore)
    if (!this.#isEnding(task) && task.row.kill_requested_at === null) await this.#writeDown(task, traceId)
    if (queue.remove(task.task_id) !== undefined) {
      dispatcher.endKilled(task)
      dispatcher.startWhatFits()
    }
    const flight = inFlight.get(task.task_id)
    // Launched while the kill was being written: it is too early to end it by force.
    if (!this.#isEnding(task) && flight?.settled !== launchBefore) await within(SETTLE_MS, flight?.settled)
    if (this.#isEnding(task)) return await within(SETTLE_MS, task.ended)
    flight?.kill()
  }

  async #writeDown(task: LiveTask, traceId: string): Promise<void> {
    const { store, inFlight, log } = this.#context
    const change = { patch: { kill_requested_at: Date.now() }, events: [killRequested()] }
    try {
      await store.promise(task, change)
    } catch (error) {
      if (!inFlight.get(task.task_id)?.trySendKill()) throw error
      // The launcher ends the task whatever becomes of us: a full disk does not keep a task from being killed.
      store.note(task, change)
    }
    log.info('kill requested', { trace_id: traceId, task_id: task.task_id })
  }

  #isEnding(task: LiveTask): boolean {
    return task.isEnding || this.#context.inFlight.get(task.task_id)?.phase.name === 'ending'
  }
}

async function within(ms: number, event: Promise<unknown> | undefined): Promise<void> {
  if (event === undefined) return
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, ms)
  await Promise.race([event, late.promise])
  clearTimeout(timer)
}

/**
 * What the tasks of the runtime service wait for: those in its queue, and all of them while it cannot write.
 *
 * Requested when a caller reads a task that may wait there. All callers within `SHARED_MS` share one request and
 * its answer. If the service does not answer within `ANSWER_MS`, the reason stays unknown: reading a task must not wait
 * for it.
 */
import { isObject } from '../../../shared/text/json.ts'
import type { RuntimeService } from './service.ts'

/** Milliseconds for which an answer is shared. */
const SHARED_MS = 250

/** Milliseconds for the answer. */
const ANSWER_MS = 250

/** What the task with this id waits for, in words; undefined if it does not wait. */
export type QueueView = (id: string) => string | undefined

export class RemoteQueue {
  readonly #service: Pick<RuntimeService, 'queued'>
  #answer: Promise<QueueView | undefined> | undefined
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(service: Pick<RuntimeService, 'queued'>) {
    this.#service = service
  }

  /** Knows only the first tasks of a long queue. Undefined if the service does not answer in time. Never rejects. */
  look(): Promise<QueueView | undefined> {
    const now = performance.now()
    if (this.#answer === undefined || now - this.#askedAt > SHARED_MS) {
      this.#askedAt = now
      this.#answer = this.#service.queued(ANSWER_MS).then(viewOf, () => undefined)
    }
    return this.#answer
  }
}

function viewOf(answer: unknown): QueueView {
  const details = new Map<string, string>()
  const tasks = isObject(answer) && Array.isArray(answer.tasks) ? answer.tasks : []
  for (const task of tasks) {
    if (isObject(task) && typeof task.task_id === 'string' && isObject(task.waiting_for))
      details.set(task.task_id, detailOf(task.waiting_for))
  }
  const fault = isObject(answer) && typeof answer.storage_fault === 'string' ? answer.storage_fault : undefined
  // A task may have ended. The service does not tell an end before it is on disk.
  const unwritten = fault && `the service cannot write to its data directory: ${fault}`
  return (id) => unwritten ?? details.get(id)
}

function detailOf({ resource, tenant }: Readonly<Record<string, unknown>>): string {
  if (resource === 'turn') return 'waiting for its turn'
  if (resource === 'sandbox_uid') return 'waiting for a free user id for its sandbox (--sandbox-uids)'
  const whose = typeof tenant === 'string' ? ` of the quota of tenant ${JSON.stringify(tenant)}` : ''
  return `waiting for ${String(resource)}${whose}`
}

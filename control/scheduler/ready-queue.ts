/** The queue of tasks that are ready to run, first in, first out. It is unbounded. */
import type { Task } from '../graph/graph.ts'
import { Fifo } from './fifo.ts'

/** Maximum tasks that count as queued. Further tasks count as a backlog. Source: spec, Limits A. */
export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue extends Fifo<Task> {
  /** Number of queued tasks without the backlog. */
  override get length(): number {
    return Math.min(super.length, READY_QUEUE_CAPACITY)
  }
}

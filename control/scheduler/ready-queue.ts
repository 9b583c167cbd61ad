/** Tasks that could run now, first in, first out. Nothing is refused or lost. */
import type { Task } from '../graph/graph.ts'
import { Fifo } from './fifo.ts'

/** Tasks that count as queued; those beyond count as a backlog. Source: spec, Limits A. */
export const READY_QUEUE_CAPACITY = 1024

export class ReadyQueue extends Fifo<Task> {
  /** Queued tasks, without the backlog. */
  override get length(): number {
    return Math.min(super.length, READY_QUEUE_CAPACITY)
  }
}

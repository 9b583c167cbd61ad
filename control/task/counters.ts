/** Counts of changes since the service started, for metrics. Recovered tasks count when they end. */

import type { TaskStatus, TerminalStatus } from '../../shared/contract/task-status.ts'
import { Histogram, TASK_SECONDS } from '../../shared/logs/histogram.ts'
import { type Change, isInOneGo } from './change.ts'
import type { TaskStore } from './task-store.ts'

export class Counters {
  tasksTotal = 0
  /** Tasks that have started and not ended, including those in backoff. */
  tasksRunning = 0
  /** From the first start of a task to its end. */
  readonly taskSeconds = new Histogram(TASK_SECONDS)
  readonly byType = new Map<string, number>()
  readonly ended: Record<TerminalStatus, number> = {
    success: 0,
    failed: 0,
    skipped: 0,
    cancelled: 0,
  }

  constructor(store: TaskStore) {
    store.watch((change, _seq, before) => this.#count(change, before))
  }

  #count(change: Change, before: TaskStatus | undefined): void {
    switch (change.kind) {
      case 'graph-accepted':
        this.tasksTotal += change.graph.tasks.length
        for (const { type, count } of change.graph.typeCounts)
          this.byType.set(type, (this.byType.get(type) ?? 0) + count)
        break
      case 'graph-patched':
        this.tasksTotal += change.added.length
        for (const { type } of change.added) this.byType.set(type, (this.byType.get(type) ?? 0) + 1)
        break
      case 'attempt-started':
        if (before === 'pending') this.tasksRunning++
        break
      case 'fanned-out': {
        const { task, children } = change
        this.tasksRunning++
        this.tasksTotal += children.length
        if (children.length > 0) this.byType.set(task.type, (this.byType.get(task.type) ?? 0) + children.length)
        break
      }
      case 'attempt-interrupted':
        this.tasksRunning--
        break
      case 'ended':
        this.ended[change.ending.status]++
        if (before !== 'pending') this.tasksRunning--
        else if (!isInOneGo(change.ending)) break
        this.taskSeconds.add(Math.max(0, change.at - (change.task.startedAt ?? change.at)) / 1_000)
    }
  }
}

/** Counters since the start of the service, for its metrics. */
import type { ErrorInfo, ResourceUsage } from '../../shared/contract/runtime.ts'
import { RUNTIME_STATUSES, type RuntimeStatus } from '../../shared/contract/runtime-status.ts'
import { Histogram, TASK_SECONDS } from '../../shared/logs/histogram.ts'
import type { TaskRow } from '../store/tasks.ts'

/** Upper bounds of the histogram of durations, in milliseconds: from the cost of a process to an hour. */
export const DURATION_BOUNDS_MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 5_000, 30_000, 60_000, 300_000, 3_600_000]

export class Totals {
  /** Tasks that entered each status. */
  readonly byStatus = Object.fromEntries(RUNTIME_STATUSES.map((status) => [status, 0])) as Record<RuntimeStatus, number>
  readonly errorsByCode = new Map<string, number>()
  /** From start to end, in milliseconds. */
  readonly durationsMs = new Histogram(DURATION_BOUNDS_MS)
  /** The same in seconds. */
  readonly durations = new Histogram(TASK_SECONDS)

  accepted(): void {
    this.byStatus.accepted++
  }

  started(): void {
    this.byStatus.running++
  }

  ended({ status, error, usage }: TaskRow): void {
    this.byStatus[status]++
    if (error !== null) {
      const { code } = JSON.parse(error) as ErrorInfo
      this.errorsByCode.set(code, (this.errorsByCode.get(code) ?? 0) + 1)
    }
    if (usage === null) return
    const { duration_ms } = JSON.parse(usage) as ResourceUsage
    this.durationsMs.add(duration_ms)
    this.durations.add(duration_ms / 1_000)
  }
}

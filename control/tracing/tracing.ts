/**
 * Traces of graphs and attempts for OpenTelemetry. Loaded only if an endpoint is set.
 *
 * A graph is a span from its acceptance to its end. Each attempt of its tasks is a span below it, those of children below
 * the task with `for_each`. Spans come from the changes of the store; nothing waits for them.
 */
import type { Log } from '../../shared/logs/log.ts'
import { runCooperatively } from '../../shared/process/steps.ts'
import { type Change, isInOneGo } from '../task/change.ts'
import type { Graph, Task } from '../task/graph.ts'
import { graphTotals } from '../task/graph-summary.ts'
import type { TaskStore } from '../task/task-store.ts'
import { SpanExporter } from './exporter.ts'
import { tracingSettings } from './settings.ts'
import { type AttemptEnding, attemptSpan, graphSpan } from './spans.ts'
import { traceContextOf } from './trace-context.ts'

export interface TracingOptions {
  readonly endpoint: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly serviceId: string
  readonly store: Pick<TaskStore, 'watch'>
  readonly log: Log
}

/** Undefined if a variable turns traces off. Throws `UsageError`. */
export function tracingOf({ endpoint, env, serviceId, store, log }: TracingOptions): Tracing | undefined {
  const settings = tracingSettings(endpoint, env)
  return settings && new Tracing(store, new SpanExporter({ ...settings, instanceId: serviceId, log }))
}

export class Tracing {
  readonly #exporter: SpanExporter
  /** Tasks with an attempt that goes on. */
  readonly #open = new WeakSet<Task>()
  readonly #unwatch: () => void

  constructor(store: Pick<TaskStore, 'watch'>, exporter: SpanExporter) {
    this.#exporter = exporter
    this.#unwatch = store.watch((change) => this.#changed(change))
  }

  get counts(): SpanExporter['counts'] {
    return this.#exporter.counts
  }

  get waitingCount(): number {
    return this.#exporter.waitingCount
  }

  /** Sends what waits, for a moment. */
  async stop(): Promise<void> {
    this.#unwatch()
    await this.#exporter.stop()
  }

  #changed(change: Change): void {
    switch (change.kind) {
      case 'attempt-started':
        if (!change.isMissed) this.#open.add(change.task)
        break
      case 'fanned-out':
        this.#open.add(change.task)
        break
      case 'attempt-failed':
        this.#ended(change.task, change.at, { status: 'failed', failure: change.failure })
        break
      case 'attempt-interrupted':
        if (!change.goesOn) this.#ended(change.task, change.at, { status: 'interrupted', error: change.reason })
        break
      case 'ended':
        if (isInOneGo(change.ending)) this.#open.add(change.task)
        if (change.ending.status !== 'skipped') this.#ended(change.task, change.at, change.ending)
        break
      case 'graph-ended':
        void this.#graphEnded(change.graph)
    }
  }

  #ended(task: Task, at: number, ending: AttemptEnding): void {
    if (!this.#open.delete(task)) return // it waited for an attempt
    const context = traceContextOf(task.graph)
    if (context.isSampled) this.#exporter.add(() => attemptSpan(task, at, ending, context))
  }

  /** In steps: a graph may have 100,000 tasks. */
  async #graphEnded(graph: Graph): Promise<void> {
    const context = traceContextOf(graph)
    if (!context.isSampled) return
    const totals = await runCooperatively(graphTotals(graph))
    this.#exporter.add(() => graphSpan(graph, totals, context))
  }
}

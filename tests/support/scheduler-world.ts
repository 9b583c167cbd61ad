/** The real scheduler with the real store and registry, and an executor that follows a script. */
import { ExecutorRegistry } from '../../control/executors/registry.ts'
import type { GraphOptions } from '../../control/rules/graph-options.ts'
import { Scheduler, type SchedulerOptions } from '../../control/scheduler/scheduler.ts'
import { Counters } from '../../control/task/counters.ts'
import type { Graph, Task } from '../../control/task/graph.ts'
import { TaskStore } from '../../control/task/task-store.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { acceptGraph } from './graph.ts'
import { memoryKeeper } from './memory-keeper.ts'
import { type Script, ScriptedExecutor } from './scripted-executor.ts'
import { until } from './until.ts'

/** A scheduler with all that it works with. */
export class World {
  readonly store = new TaskStore()
  readonly counters = new Counters(this.store)
  readonly executor: ScriptedExecutor
  readonly graphs: Graph[] = []
  readonly scheduler: Scheduler
  readonly #tasks = new Map<string, Task>()

  constructor(options: Partial<SchedulerOptions> = {}, onStart: (task: Task) => void = () => {}) {
    this.executor = new ScriptedExecutor(({ id }) => onStart(this.task(id)))
    this.scheduler = this.newScheduler(options)
  }

  newScheduler(options: Partial<SchedulerOptions> = {}): Scheduler {
    return new Scheduler({
      store: this.store,
      executors: new ExecutorRegistry([this.executor]),
      maxConcurrency: 10,
      log: silentLog(),
      abandonAfterMs: 60_000,
      serviceId: 'test',
      keeper: memoryKeeper(),
      ...options,
    })
  }

  /** `prepare` is called for each task before it may start. */
  submit(tasks: TaskInput[], prepare: (task: Task) => void = () => {}, options?: GraphOptions): Graph {
    const graph = acceptGraph(this.store, tasks, undefined, undefined, options)
    graph.tasks.forEach(prepare)
    this.graphs.push(graph)
    for (const each of graph.tasks) this.#tasks.set(each.id, each)
    this.scheduler.add(graph)
    return graph
  }

  /** The task that was submitted last under `id`, be it deleted or not. */
  task(id: string): Task {
    const found = this.#tasks.get(id) ?? this.#childOf(id)
    if (found === undefined) throw new Error(`no task ${id} was submitted`)
    return found
  }

  #childOf(id: string): Task | undefined {
    const parents = this.graphs.filter(({ fanOuts }) => fanOuts !== undefined)
    const isIt = (task: Task) => task.id === id // for one that was deleted
    return parents
      .map((graph) => this.store.taskIn(graph, id) ?? graph.tasks.find(isIt))
      .find((child) => child !== undefined)
  }

  get isOver(): boolean {
    return this.graphs.every((graph) => graph.live === 0)
  }

  async over(): Promise<void> {
    await until(
      () => this.graphs.map((graph) => graph.live),
      (live) => live.every((count) => count === 0),
    )
  }

  /** Waits until exactly `count` attempts execute. */
  async executing(count: number): Promise<void> {
    await until(() => this.executor.executing, count)
  }
}

/** A task that does what `script` says. */
export const task = (id: string, script: Script = {}, more: TaskInput = {}): TaskInput => ({
  id,
  type: 'test',
  input: script,
  ...more,
})

/** The part of a task that names its dependencies. */
export const after = (...depends_on: string[]): TaskInput => ({ depends_on })

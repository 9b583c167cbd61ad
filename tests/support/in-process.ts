/**
 * Runs tasks with executors of a test in this process, with the real registry, scheduler and store, without disk or
 * sockets.
 */
import type { Executor, MethodExecutor } from '../../control/executors/executor.ts'
import { ExecutorRegistry } from '../../control/executors/registry.ts'
import { Scheduler } from '../../control/scheduler/scheduler.ts'
import { taskRecord } from '../../control/task/record.ts'
import { TaskStore } from '../../control/task/task-store.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { TaskInput } from '../../shared/contract/submission.ts'
import type { Log } from '../../shared/logs/log.ts'
import { acceptGraph } from './graph.ts'
import { memoryKeeper } from './memory-keeper.ts'
import { memoryLog } from './memory-log.ts'
import { until } from './until.ts'

interface InProcess {
  /** Runs a graph to its end and gives its tasks. */
  run(tasks: readonly TaskInput[]): Promise<TaskRecord[]>
  /** Runs one task to its end. */
  runOne(task: TaskInput): Promise<TaskRecord>
}

export function runInProcess(executors: Iterable<Executor | MethodExecutor>, log: Log = memoryLog().log): InProcess {
  const registry = new ExecutorRegistry(executors, log)
  const store = new TaskStore()
  const scheduler = new Scheduler({
    ...{ store, executors: registry, log },
    ...{ maxConcurrency: 10, abandonAfterMs: 60_000, serviceId: 'test', keeper: memoryKeeper() },
  })
  const run = async (tasks: readonly TaskInput[]) => {
    const graph = acceptGraph(store, [...tasks], Date.now(), registry.types)
    scheduler.add(graph)
    await until(() => graph.live, 0)
    return graph.tasks.map(taskRecord)
  }
  return { run, runOne: async (task) => (await run([{ id: crypto.randomUUID(), ...task }]))[0]! }
}

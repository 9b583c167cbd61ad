/** The context of an executor that a test calls without a scheduler. It records what the executor reports. */
import type { ExecutableTask, ExecutorContext } from '../../control/executors/executor.ts'
import { silentLog } from '../../shared/logs/log.ts'
import { attemptMarkOf } from '../../shared/process/service-id.ts'

interface TestContext extends ExecutorContext {
  /** In order: `begin`, `startedProcess 123`, `settled`. */
  readonly calls: readonly string[]
  abort(): void
}

let attempts = 0

/** Names this process's attempts in the environment of what they start. */
const SERVICE = `test-${process.pid}-${crypto.randomUUID()}`

/** What the environment of every process begins with that an executor started under one of these contexts. */
export const attemptMark = attemptMarkOf(SERVICE)

export function testContext(more: Partial<ExecutorContext> = {}): TestContext {
  const controller = new AbortController()
  const calls: string[] = []
  return {
    signal: controller.signal,
    graphId: 'graph',
    attempt: 1,
    handle: undefined,
    handOver: (handle) => void calls.push(`handOver ${handle?.id}${handle?.isTaken ? ' taken' : ''}`),
    goesOn: () => void calls.push('goesOn'),
    isTimed: false,
    waits: () => void calls.push('waits'),
    works: () => void calls.push('works'),
    traceId: 'trace',
    trace: undefined,
    log: silentLog(),
    attemptId: `${SERVICE}/${++attempts}`,
    begin() {
      calls.push('begin')
      return undefined
    },
    startedProcess: (pid) => void calls.push(`startedProcess ${pid}`),
    standBy: () => {
      calls.push('standBy')
      return async () => void calls.push('resume')
    },
    settled: () => void calls.push('settled'),
    progress: () => {},
    showOutput: () => {},
    ...more,
    calls,
    abort: () => controller.abort('cancelled'),
  }
}

export const executableTask = (task: Partial<ExecutableTask> = {}): ExecutableTask => ({
  ...{ id: 'task', type: 'test', toolName: undefined, input: undefined, timeout: undefined, annotations: undefined },
  ...task,
})

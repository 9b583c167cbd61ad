/**
 * Random graphs of local and runtime tasks for crash tests. Each task with a program records its runs in a file. Its
 * outcome without interference is known beforehand.
 */
import type { Random } from './random.ts'

/** How a task ends by itself; a `refused` one is never taken in by the runtime service, an `endless` one has to be ended, at the latest for its timeout. */
type OwnEnd =
  | { readonly kind: 'success' }
  | { readonly kind: 'failed' | 'refused'; readonly code: string; readonly exitCode?: number }
  | { readonly kind: 'endless' }

export interface PlannedTask {
  readonly id: string
  readonly isRuntime: boolean
  readonly end: OwnEnd
  readonly retry: number
  readonly dependsOn: readonly string[]
  /** Milliseconds for each attempt. */
  readonly timeout: number | undefined
}

/** Where tasks note their runs: local ones their attempt, runtime ones their mark. */
interface RunNotes {
  readonly local: string
  readonly runtime: string
}

interface MixedGraph {
  readonly tasks: readonly object[]
  readonly planned: readonly PlannedTask[]
}

const MAX_TASKS = 6

/** Milliseconds after which the runtime service ends what should have been ended long before: no test waits for that. */
const ENDLESS_MS = 120_000

type Parts = Pick<PlannedTask, 'isRuntime' | 'end'> & { readonly task: object; readonly timeout?: number }

/** A graph whose tasks are called `<name>.<n>`; `name` has no dot and no dash. */
export function mixedGraph(random: Random, name: string, notes: RunNotes): MixedGraph {
  const size = 1 + random(MAX_TASKS)
  const planned: PlannedTask[] = []
  const tasks = Array.from({ length: size }, (_, i) => {
    const id = `${name}.${i}`
    const dependsOn = Array.from({ length: i === 0 ? 0 : random(3) }, () => `${name}.${random(i)}`)
    const { task, isRuntime, end, timeout } = random(10) < 3 ? localTask(random, notes) : runtimeTask(random, notes)
    const retry = random(end.kind === 'endless' ? 2 : 5) // what holds a place for long is not to hold all of them
    planned.push({ id, isRuntime, end, retry, dependsOn, timeout })
    return { id, depends_on: dependsOn, retry, ...(timeout !== undefined && { timeout }), ...task }
  })
  return { tasks, planned }
}

function localTask(random: Random, { local }: RunNotes): Parts {
  const kind = random(4)
  const success = { isRuntime: false, end: { kind: 'success' } } as const
  if (kind === 0) return { ...success, task: { type: 'noop' } }
  if (kind === 1) return { ...success, task: { type: 'sleep', params: { duration_ms: random(30) } } }
  const exitCode = [0, 3][random(2)]!
  const pause = ['', `sleep 0.0${random(9)};`, 'sleep 0.2 & wait;'][random(3)]!
  const script = `echo "$TASKMILL_ATTEMPT" >> ${local}; ${pause} exit ${exitCode}`
  return { isRuntime: false, end: exit(exitCode, 'exit_nonzero'), task: { type: 'shell', params: { script } } }
}

function runtimeTask(random: Random, { runtime }: RunNotes): Parts {
  const note = `echo "$TASKMILL_TASK" >> ${runtime}`
  const script = (text: string, limits: object = {}) => ({
    type: 'runtime.script',
    params: { script: `${note}; ${text}`, limits },
  })
  // A timeout may fall into any part of the life of an attempt.
  const timeout = random(4) === 0 ? { timeout: 1 + random(150) } : {}
  const kind = random(20)
  if (kind === 0) {
    const task = { type: 'runtime.script', params: { script: '' } }
    return { isRuntime: true, end: { kind: 'refused', code: 'invalid_input' }, task, ...timeout }
  }
  if (kind === 1) {
    const task = { type: 'runtime.command', params: { program: '/no/such/program' } }
    return { isRuntime: true, end: { kind: 'failed', code: 'launch_failed' }, task, ...timeout }
  }
  if (kind === 2) {
    const task = script('sleep 600', { wall_time_ms: 20 + random(200) })
    return { isRuntime: true, end: { kind: 'failed', code: 'timeout' }, task, ...timeout }
  }
  if (kind < 6) {
    const text = random(3) === 0 ? "trap '' TERM; while :; do sleep 0.02; done" : 'sleep 600 & wait'
    const task = script(text, { wall_time_ms: ENDLESS_MS })
    return { isRuntime: true, end: { kind: 'endless' }, task, timeout: 20 + random(random(3) === 0 ? 2_000 : 200) }
  }
  const exitCode = [0, 0, 0, 3, 77][random(5)]!
  const pause = ['', '', 'sleep 0.01;', 'sleep 0.05;', 'sleep 0.3 & wait;', 'sleep 0.6;', 'setsid sleep 600 &'][
    random(7)
  ]!
  return { isRuntime: true, end: exit(exitCode, 'exit_nonzero'), task: script(`${pause} exit ${exitCode}`), ...timeout }
}

const exit = (exitCode: number, code: string): OwnEnd =>
  exitCode === 0 ? { kind: 'success' } : { kind: 'failed', code, exitCode }

/**
 * Runs one task after the other, alternately through the runtime service and through control, to measure the overhead
 * of control.
 */
import { percentile } from '../statistics.ts'
import { Connection, withPatience } from './connection.ts'
import type { Jobs, ThroughResult } from './jobs.ts'
import { getRecord, getTask, postTask, postTasks } from './requests.ts'

/** Longest wait for the end of a task, as both services have it. */
const TASK_WAIT_MS = 60_000

const PROGRAM = '/bin/true'

/** Runs one task to its end, and gives the milliseconds from the first byte of POST to the answer that says success. */
type Run = (id: string) => Promise<number>

export async function through(job: Jobs['through']['input']): Promise<ThroughResult> {
  const { controlUrl, runtimeUrl, tasks, warmUpTasks, limitMs, prefix } = job
  using control = await Connection.open(controlUrl)
  using runtime = await Connection.open(runtimeUrl)
  const direct: Run = (id) => {
    const task = postTask({ task_id: id, execution: { kind: 'command', program: PROGRAM } })
    return timed(runtime, [200, task], getTask(id, TASK_WAIT_MS))
  }
  const over: Run = (id) => {
    const graph = postTasks([{ id, type: 'runtime', params: { program: PROGRAM } }])
    return timed(control, [202, graph], getRecord(id, TASK_WAIT_MS))
  }
  const [directMs, overMs]: [number[], number[]] = [[], []]
  const rounds = async (name: string, count: number, note: boolean) => {
    const until = performance.now() + limitMs
    for (let i = 0; i < count && performance.now() < until; i++) {
      const isDirectFirst = i % 2 === 0
      for (const isDirect of [isDirectFirst, !isDirectFirst]) {
        const ms = await (isDirect ? direct : over)(`${prefix}-${name}-${isDirect ? 'd' : 'o'}${i}`)
        if (note) (isDirect ? directMs : overMs).push(ms)
      }
    }
  }
  await withPatience('warming up', rounds('warm', warmUpTasks, false))
  await withPatience('the load', rounds('run', tasks, true))
  return { direct: percentiles(directMs), through: percentiles(overMs) }
}

async function timed(connection: Connection, [status, submission]: [number, Uint8Array], question: Uint8Array) {
  const start = performance.now()
  await connection.expect(status, submission)
  const answer = await connection.expect(200, question)
  const ms = performance.now() - start
  if (!answer.includes('"status":"success"')) throw new Error(`the task did not succeed: ${answer}`)
  return ms
}

function percentiles(latencies: readonly number[]) {
  const sorted = Float64Array.from(latencies).sort()
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99) }
}

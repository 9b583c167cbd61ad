/** Runs tasks of the runtime service that write all the time, and follows the log of each at control. */
import { cpuMs } from '../process-stats.ts'
import { Connection, withPatience } from './connection.ts'
import type { Jobs, LogsResult } from './jobs.ts'
import { postTasks } from './requests.ts'

const NEWLINE = 10

export async function logs(job: Jobs['logs']['input']): Promise<LogsResult> {
  const { controlUrl, pids, tasks, program, linesPerSecond, seconds, prefix } = job
  const ids = Array.from({ length: tasks }, (_, i) => `${prefix}-${i}`)
  const params = { program, args: [String(linesPerSecond), String(seconds)] }
  using connection = await Connection.open(controlUrl)
  const used = () => pids.map(cpuMs)
  const begun = Promise.withResolvers<{ at: number; cpu: readonly number[] }>()
  let silent = tasks
  const follow = async (id: string): Promise<number> => {
    const response = await fetch(`${controlUrl}/tasks/${id}/logs?follow=true`)
    let lines = 0
    for await (const chunk of response.body!) {
      if (lines === 0 && --silent === 0) begun.resolve({ at: performance.now(), cpu: used() })
      for (const byte of chunk) if (byte === NEWLINE) lines++
    }
    return lines
  }
  await connection.expect(202, postTasks(ids.map((id) => ({ id, type: 'runtime', params }))))
  const counts = await withPatience('the output', Promise.all(ids.map(follow)))
  const { at, cpu } = await begun.promise
  const wanted = linesPerSecond * seconds
  const short = counts.find((lines) => lines !== wanted)
  if (short !== undefined) throw new Error(`a log has ${short} of ${wanted} lines`)
  const elapsedMs = performance.now() - at
  return { elapsedMs, coreShares: used().map((ms, i) => (ms - cpu[i]!) / elapsedMs) }
}

/**
 * Measures how long a graph takes, from POST to the end of its last task.
 *
 * It polls `tasks_succeeded` of GET /metrics. On a server without that metric it polls the last task until that has
 * ended, then the list of all tasks. The list takes time that counts against the server.
 */
import type { MetricsResponse, TaskRecord } from '../../shared/contract/control.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { cpuMs } from '../process-stats.ts'
import { Connection, withPatience } from './connection.ts'
import type { GraphResult, Jobs } from './jobs.ts'
import { chain, get, layers, postTasks, wide } from './requests.ts'

/** Graphs with this many tasks or more are polled once a millisecond. Smaller graphs are polled without a pause. */
const PAUSE_FROM_TASKS = 10_000

export async function graph(job: Jobs['graph']['input']): Promise<GraphResult> {
  const { url, pid, tasks, repeats, warmUps, prefix } = job
  using connection = await Connection.open(url)
  const shape = { wide, chain, layers }[job.shape]
  const hasMetrics = (await succeededTasks(connection)) !== null
  const elapsedMs: number[] = []
  let cpuBefore: number | null = null
  for (let run = 0; run < warmUps + repeats; run++) {
    const request = postTasks(shape(`${prefix}-${run}`, tasks))
    const before = (await succeededTasks(connection)) ?? 0
    if (run === warmUps) {
      Bun.gc(true)
      cpuBefore = pid === undefined ? null : cpuMs(pid)
    }
    const start = performance.now()
    await withPatience('POST /tasks', connection.expect(202, request))
    const pause = () => (tasks >= PAUSE_FROM_TASKS ? Bun.sleep(1) : undefined)
    const ended = hasMetrics
      ? until(pause, async () => (await succeededTasks(connection))! - before >= tasks)
      : allEnded(connection, `${prefix}-${run}-`, tasks, pause)
    await withPatience('the graph', ended)
    if (run >= warmUps) elapsedMs.push(performance.now() - start)
  }
  return { elapsedMs, serverCpuMs: cpuBefore === null ? null : cpuMs(pid!) - cpuBefore }
}

const metricsRequest = get('/metrics')

/** Null where the server does not count them. */
async function succeededTasks(connection: Connection): Promise<number | null> {
  const { status, body } = await connection.send(metricsRequest)
  if (status !== 200 || !body.startsWith('{')) return null
  const { tasks_succeeded } = JSON.parse(body) as Partial<MetricsResponse>
  return tasks_succeeded ?? null
}

async function allEnded(connection: Connection, idStart: string, tasks: number, pause: Pause): Promise<void> {
  const lastRequest = get(`/tasks/${idStart}${tasks - 1}`)
  await until(pause, async () =>
    isTerminal((JSON.parse(await connection.expect(200, lastRequest)) as TaskRecord).status),
  )
  await until(pause, async () => {
    const records = JSON.parse(await connection.expect(200, get('/tasks'))) as TaskRecord[]
    return records.filter(({ id, status }) => id.startsWith(idStart) && isTerminal(status)).length === tasks
  })
}

type Pause = () => Promise<void> | undefined

async function until(pause: Pause, isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await pause()
}

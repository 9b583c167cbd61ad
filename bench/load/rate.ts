/** Measures requests per second and their latency with a closed loop of keep-alive clients. */
import type { SandboxPolicy } from '../../shared/contract/runtime-request.ts'
import { cpuMs, descendantsCpuMs } from '../process-stats.ts'
import { percentile } from '../statistics.ts'
import { type Connection, openConnections, withPatience } from './connection.ts'
import type { Jobs, RequestsResult } from './jobs.ts'
import { get, getRecord, getTask, postTask, postTasks, tenTasks } from './requests.ts'

/** Longest wait for the end of a task, as both services have it. */
const TASK_WAIT_MS = 60_000

/** What a client does once: one request, or several that belong together. */
type Exchange = (connection: Connection) => Promise<unknown>

export async function submit({ url, pid, clients, graphs, warmUpGraphs, prefix }: Jobs['submit']['input']) {
  const exchanges = (from: number, count: number) =>
    made(count, (i) => answered(202, postTasks(tenTasks(`${prefix}-${from + i}`))))
  return measured({ url, pid, clients }, exchanges(0, warmUpGraphs), exchanges(warmUpGraphs, graphs))
}

export async function getPath({ url, pid, path, clients, requests, warmUpRequests }: Jobs['get']['input']) {
  const exchange = answered(200, get(path))
  const exchanges = (count: number) => made(count, () => exchange)
  return measured({ url, pid, clients }, exchanges(warmUpRequests), exchanges(requests))
}

export async function run(job: Jobs['run']['input']) {
  const { url, pid, clients, tasks, warmUpTasks, limitMs, sandbox, command, prefix } = job
  const exchanges = (from: number, count: number) =>
    made(count, (i) => taskRun(`${prefix}-${from + i}`, sandbox, command))
  return measured({ url, pid, clients, limitMs }, exchanges(0, warmUpTasks), exchanges(warmUpTasks, tasks))
}

export async function one(job: Jobs['one']['input']) {
  const { url, pid, clients, tasks, warmUpTasks, limitMs, task, prefix } = job
  const exchange = (id: string) => submitted(postTasks([{ id, ...task }]), 202, getRecord(id, TASK_WAIT_MS))
  const exchanges = (from: number, count: number) => made(count, (i) => exchange(`${prefix}-${from + i}`))
  return measured({ url, pid, clients, limitMs }, exchanges(0, warmUpTasks), exchanges(warmUpTasks, tasks))
}

const made = (count: number, make: (i: number) => Exchange): Exchange[] =>
  Array.from({ length: count }, (_, i) => make(i))

const answered =
  (status: number, request: Uint8Array): Exchange =>
  (connection) =>
    connection.expect(status, request)

function taskRun(
  task_id: string,
  sandbox: SandboxPolicy | undefined,
  [program, ...args]: readonly [string, ...string[]] = ['/bin/true'],
): Exchange {
  // A service without a token refuses strict tasks with the network of the host.
  const capability_mode = sandbox?.network === 'host' ? 'adaptive' : 'strict'
  const asked = sandbox === undefined ? {} : { sandbox, policy: { capability_mode } as const }
  const submission = postTask({ task_id, execution: { kind: 'command', program, args }, ...asked })
  return submitted(submission, 200, getTask(task_id, TASK_WAIT_MS))
}

/** Submits a task, waits for its end, and throws if that is no success. */
const submitted =
  (submission: Uint8Array, accepted: number, question: Uint8Array): Exchange =>
  async (connection) => {
    await connection.expect(accepted, submission)
    const record = await connection.expect(200, question)
    if (!record.includes('"status":"success"')) throw new Error(`a task did not succeed: ${record}`)
  }

interface Aim {
  readonly url: string
  readonly pid: number | undefined
  readonly clients: number
  /** Milliseconds after which nothing more begins. Absent: everything is done. */
  readonly limitMs?: number
}

async function measured(
  { url, pid, clients, limitMs = Number.POSITIVE_INFINITY }: Aim,
  warmUp: readonly Exchange[],
  exchanges: readonly Exchange[],
): Promise<RequestsResult> {
  const connections = await openConnections(url, clients)
  try {
    await withPatience('warming up', drive(connections, warmUp, limitMs))
    Bun.gc(true) // ours must not fall into the measurement
    const serverBefore = usedBy(pid)
    const ownBefore = cpuMs(process.pid)
    const start = performance.now()
    const latencies = await withPatience('the load', drive(connections, exchanges, limitMs))
    const elapsedMs = performance.now() - start
    const ownCpu = cpuMs(process.pid) - ownBefore
    const server = usedBy(pid)
    const count = latencies.length
    latencies.sort()
    return {
      ratePerSecond: (count / elapsedMs) * 1000,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      serverCpuMs: server === null ? null : (server.cpuMs - serverBefore!.cpuMs) / count,
      serverChildrenCpuMs: server === null ? null : (server.childrenCpuMs - serverBefore!.childrenCpuMs) / count,
      ownCoreShare: ownCpu / elapsedMs,
    }
  } finally {
    for (const connection of connections) connection[Symbol.dispose]()
  }
}

const usedBy = (pid: number | undefined) =>
  pid === undefined ? null : { cpuMs: cpuMs(pid), childrenCpuMs: descendantsCpuMs(pid) }

/** Does all exchanges, one at a time per connection, as far as there is time; returns how long each took. */
async function drive(connections: Connection[], exchanges: readonly Exchange[], limitMs: number) {
  const latencies = new Float64Array(exchanges.length)
  const until = performance.now() + limitMs
  let next = 0
  const client = async (connection: Connection) => {
    while (next < exchanges.length && performance.now() < until) {
      const i = next++
      const start = performance.now()
      await exchanges[i]!(connection)
      latencies[i] = performance.now() - start
    }
  }
  await Promise.all(connections.map(client))
  return latencies.subarray(0, next)
}

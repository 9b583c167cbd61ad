/** How many requests per second, and how long each takes: a closed loop of keep-alive clients. */
import { cpuMs } from '../process-stats.ts'
import { percentile } from '../statistics.ts'
import { type Connection, openConnections, withPatience } from './connection.ts'
import type { Jobs, RequestsResult } from './jobs.ts'
import { get, postTasks, tenTasks } from './requests.ts'

export async function submit({ url, pid, clients, graphs, warmUpGraphs, prefix }: Jobs['submit']['input']) {
  const requests = (from: number, count: number) =>
    Array.from({ length: count }, (_, i) => postTasks(tenTasks(`${prefix}-${from + i}`)))
  return measured({ url, pid, clients, status: 202 }, requests(0, warmUpGraphs), requests(warmUpGraphs, graphs))
}

export async function health({ url, pid, clients, requests }: Jobs['health']['input']) {
  const request = get('/health')
  const warmUp = new Array(Math.ceil(requests / 10)).fill(request)
  return measured({ url, pid, clients, status: 200 }, warmUp, new Array(requests).fill(request))
}

type Aim = { url: string; pid: number | undefined; clients: number; status: number }

async function measured(
  { url, pid, clients, status }: Aim,
  warmUp: readonly Uint8Array[],
  requests: readonly Uint8Array[],
): Promise<RequestsResult> {
  const connections = await openConnections(url, clients)
  try {
    await withPatience('warming up', drive(connections, warmUp, status))
    Bun.gc(true) // ours must not fall into the measurement
    const serverBefore = pid === undefined ? null : cpuMs(pid)
    const ownBefore = cpuMs(process.pid)
    const start = performance.now()
    const latencies = await withPatience('the load', drive(connections, requests, status))
    const elapsedMs = performance.now() - start
    const ownCpu = cpuMs(process.pid) - ownBefore
    latencies.sort()
    return {
      ratePerSecond: (requests.length / elapsedMs) * 1000,
      p50Ms: percentile(latencies, 0.5),
      p99Ms: percentile(latencies, 0.99),
      serverCpuMs: serverBefore === null ? null : (cpuMs(pid!) - serverBefore) / requests.length,
      ownCpuMs: ownCpu / requests.length,
      ownCoreShare: ownCpu / elapsedMs,
    }
  } finally {
    for (const connection of connections) connection[Symbol.dispose]()
  }
}

/** Sends all requests, one at a time per connection, and returns how long each took. */
async function drive(connections: Connection[], requests: readonly Uint8Array[], status: number) {
  const latencies = new Float64Array(requests.length)
  let next = 0
  const client = async (connection: Connection) => {
    while (next < requests.length) {
      const i = next++
      const start = performance.now()
      await connection.expect(status, requests[i]!)
      latencies[i] = performance.now() - start
    }
  }
  await Promise.all(connections.map(client))
  return latencies
}

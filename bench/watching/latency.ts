/**
 * Measures the time from a change to each client that watches the service.
 *
 * A graph of one no-op task is submitted every few milliseconds: three changes, which 100 clients are told of. A change
 * is told once it is on disk, so this includes the sync. An event says when its change happened in whole milliseconds, so
 * the figures are too high by half a millisecond on average. The generator reads one client after the other, which takes
 * part of the time too; for the floor it does the same.
 */
import type { WatchingWorkload } from './workload.ts'

/** Milliseconds within which a client should hear of a change. */
const GOAL_MS = 5

export const latency: WatchingWorkload = {
  name: 'latency',
  measures: ({ latencyClients }) => [
    {
      key: 'latency_p50',
      label: `change to client, ${latencyClients} clients: half within`,
      unit: 'ms',
      better: 'lower',
    },
    {
      ...{ key: 'latency_p99', label: '… 99 % within', unit: 'ms', better: 'lower' },
      goal: { figure: GOAL_MS },
    },
    { key: 'latency_cpu', label: '… CPU of the server for a graph', unit: 'µs', better: 'lower' },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { latencyClients: clients, latencyGraphs: graphs, warmUpGraphs } = sizes
    await using server = await target.start()
    const { url, pid } = server
    const result = await load.run('events', { url, pid, clients, graphs, warmUpGraphs, prefix: freshPrefix() })
    return {
      latency_p50: result.p50Ms,
      latency_p99: result.p99Ms,
      latency_cpu: result.serverCpuMs === null ? null : result.serverCpuMs * 1000,
    }
  },
}

/**
 * Measures the time from a change to the arrival of its event at each client that watches the service.
 *
 * A graph of one no-op task is submitted every few milliseconds. Each graph makes three changes, and 100 clients get an
 * event for each. An event is sent once its change is on disk, so the time includes the sync. Times of changes are
 * whole milliseconds, so the figures are too high by half a millisecond on average. The generator reads one client
 * after the other, which takes a part of the time, with control and with the floor.
 */
import type { WatchingWorkload } from './sizes.ts'

/** Goal: milliseconds from a change to a client. */
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

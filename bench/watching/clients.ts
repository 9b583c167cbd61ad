/**
 * Measures the memory (Pss) of the server per client, with 1,000 clients that watch the service: before the first
 * event, and after some 50 events.
 *
 * Some clients connect and disconnect first, so that the server has loaded its code. Memory of the kernel for
 * connections is not included. The figures are rough, because the garbage collector returns memory late.
 */
import { KB } from '../measure.ts'
import { memoryBytes } from '../process-stats.ts'
import type { WatchingWorkload } from './sizes.ts'
import { submittedGraphs } from './submitted.ts'

/** Goal: kilobytes per client. */
const GOAL_KB = 20

/** Clients that connect and disconnect before the measurement. */
const EARLIER_CLIENTS = 50

const EVENTS_OF_GRAPH = 3

export const clients: WatchingWorkload = {
  name: 'clients',
  measures: ({ manyClients, heardGraphs }) => {
    const goal = { figure: GOAL_KB }
    const label = `memory for each of ${manyClients.toLocaleString('en')} event clients`
    const events = heardGraphs * EVENTS_OF_GRAPH
    return [
      { key: 'clients_idle', label: `${label}, idle`, unit: 'KB', better: 'lower', goal },
      { key: 'clients_after', label: `… after ${events} events each`, unit: 'KB', better: 'lower', goal },
    ]
  },
  async run(target, { sizes, prober, freshPrefix }) {
    const { manyClients, heardGraphs, warmUpGraphs, settleMs } = sizes
    await using server = await target.start()
    const { url, pid } = server
    if (pid === undefined) return {}
    const settled = async () => {
      await Bun.sleep(settleMs)
      return memoryBytes(pid)
    }
    await prober.run('streams-open', { url, paths: ['/events'], count: EARLIER_CLIENTS })
    await submittedGraphs(url, freshPrefix(), warmUpGraphs)
    await prober.run('streams-close', null)
    const before = await settled()
    await prober.run('streams-open', { url, paths: ['/events'], count: manyClients })
    const idle = await settled()
    await submittedGraphs(url, freshPrefix(), heardGraphs)
    await prober.run('streams-told', { graphs: heardGraphs })
    const after = await settled()
    await prober.run('streams-close', null)
    return { clients_idle: (idle - before) / KB / manyClients, clients_after: (after - before) / KB / manyClients }
  },
}

/**
 * Measures whether clients that watch ended graphs slow down submissions.
 *
 * Two servers have 1,000 ended graphs each. On one of them, a client watches each graph, as an open page does. Ten-task
 * graphs are submitted in slices that alternate between the servers.
 */
import { settleDisk } from '../disk.ts'
import { median } from '../statistics.ts'
import type { WatchingWorkload } from './sizes.ts'
import { submittedGraphs } from './submitted.ts'

const CLIENTS = 8

/** Goal: the 99th percentile of answer times with watched graphs, as a multiple of that without. */
const GOAL_RATIO = 1.2

export const beside: WatchingWorkload = {
  name: 'beside',
  measures: ({ manyClients }) => {
    const watchers = `${manyClients.toLocaleString('en')} idle graphs are watched`
    return [
      {
        ...{ key: 'beside_none_p99', unit: 'ms', better: 'lower' },
        label: `ten-task graphs, ${CLIENTS} clients, no event streams: 99 % answered within`,
      },
      { key: 'beside_many_p99', label: `… ${watchers}`, unit: 'ms', better: 'lower' },
      {
        ...{ key: 'beside_ratio', label: '… one by the other', unit: 'ratio', better: 'lower' },
        goal: { figure: GOAL_RATIO },
      },
    ]
  },
  async run(target, { sizes, load, prober, freshPrefix }) {
    const { manyClients, sliceGraphs, slices, warmUpGraphs } = sizes
    await using unwatched = await target.start()
    if (unwatched.dataDir === undefined) return {} // a running server cannot be started a second time
    await using watched = await target.start()
    for (const { url } of [unwatched, watched]) {
      const graphs = await submittedGraphs(url, freshPrefix(), manyClients)
      const paths = graphs.map((id) => `/graphs/${id}/events`)
      if (url === watched.url) await prober.run('streams-open', { url, paths, count: manyClients })
      await load.run('submit', { url, clients: CLIENTS, graphs: warmUpGraphs, warmUpGraphs: 0, prefix: freshPrefix() })
    }
    settleDisk(unwatched.dataDir)
    const timed = async (url: string) => {
      const job = { url, clients: CLIENTS, graphs: sliceGraphs, warmUpGraphs: 0, prefix: freshPrefix() }
      return (await load.run('submit', job)).p99Ms
    }
    const p99: { none: number; many: number }[] = []
    for (let i = 0; i < slices; i++) p99.push({ none: await timed(unwatched.url), many: await timed(watched.url) })
    await prober.run('streams-close', null)
    return {
      beside_none_p99: median(p99.map(({ none }) => none)),
      beside_many_p99: median(p99.map(({ many }) => many)),
      beside_ratio: median(p99.map(({ none, many }) => many / none)),
    }
  },
}

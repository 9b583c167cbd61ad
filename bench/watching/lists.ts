/**
 * Measures the time for the first page of a list while the service stores 100,000 tasks. Half of them are in graphs of
 * ten tasks. The others are in one graph, the newest, whose summary counts all its tasks.
 */
import type { WatchingWorkload } from './sizes.ts'

/** Goal: milliseconds for a page. */
const GOAL_MS = 20

const LISTS = { tasks: '/tasks?limit=100', graphs: '/graphs' } as const

const TASKS_OF_GRAPH = 10

export const lists: WatchingWorkload = {
  name: 'lists',
  measures: ({ listedTasks }) =>
    Object.entries(LISTS).map(([name, path]) => ({
      ...{ key: `lists_${name}_p99`, unit: 'ms', better: 'lower', goal: { figure: GOAL_MS } },
      label: `GET ${path}, ${listedTasks.toLocaleString('en')} tasks: 99 % within`,
    })),
  async run(target, { sizes, load, freshPrefix }) {
    const { listedTasks, pages } = sizes
    await using server = await target.start()
    const { url } = server
    const graphs = listedTasks / 2 / TASKS_OF_GRAPH
    await load.run('submit', { url, clients: 8, graphs, warmUpGraphs: 0, prefix: freshPrefix() })
    const large = { shape: 'wide', tasks: listedTasks / 2, warmUps: 0, repeats: 1 } as const
    await load.run('graph', { url, ...large, prefix: freshPrefix() })
    const figures: Record<string, number> = {}
    for (const [name, path] of Object.entries(LISTS)) {
      const { p99Ms } = await load.run('get', { url, path, clients: 1, requests: pages, warmUpRequests: 0 })
      figures[`lists_${name}_p99`] = p99Ms
    }
    return figures
  },
}

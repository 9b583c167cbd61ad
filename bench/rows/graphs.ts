/** No-op tasks in graphs of several shapes: from the first byte of POST to the end of the last task. */
import type { Jobs } from '../load/jobs.ts'
import type { ServerTarget } from '../server.ts'
import { median } from '../statistics.ts'
import type { Workload } from '../suite.ts'
import type { ControlRowSizes } from './sizes.ts'

export const graphs: Workload<ServerTarget, ControlRowSizes> = {
  name: 'graphs',
  measures: ({ graphs }) =>
    graphs.map(({ key, label, goal }) => ({ key, label, unit: 'ms', better: 'lower', goal }) as const),
  async run(target, { sizes, load, freshPrefix }) {
    const figures: Record<string, number> = {}
    for (const { key, shape, tasks, repeats, warmUps } of sizes.graphs) {
      await using server = await target.start()
      const job: Jobs['graph']['input'] = { url: server.url, shape, tasks, repeats, warmUps, prefix: freshPrefix() }
      figures[key] = median((await load.run('graph', job)).elapsedMs)
    }
    return figures
  },
}

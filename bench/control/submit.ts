/**
 * POST /tasks with ten-task no-op graphs from 1, 8 and 32 keep-alive clients, each on a fresh, warmed server.
 *
 * A client sends its next graph when it has received the previous answer. The tasks run meanwhile and use the server
 * too, so this is the rate of a working service rather than of its intake alone. A single client and its server share
 * one core (affinity.ts).
 */
import { onOneCore } from '../affinity.ts'
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'

export interface SubmitSizes {
  /** Clients at the same time to graphs submitted by all of them together. Fewer would measure the start of the JIT. */
  readonly submitGraphs: ReadonlyMap<number, number>
  /** Graphs that make a fresh server warm before the clock starts. */
  readonly warmUpGraphs: number
}

const clientsText = (clients: number) => (clients === 1 ? '1 client' : `${clients} clients`)

export const submit: Workload<ServerTarget, SubmitSizes> = {
  name: 'submit',
  measures: (sizes) =>
    [...sizes.submitGraphs.keys()].flatMap((clients) => {
      const who = clientsText(clients)
      return [
        { key: `submit_${clients}_rate`, label: `ten-task graphs, ${who}`, unit: '/s', better: 'higher' },
        { key: `submit_${clients}_p50`, label: `… half answered within, ${who}`, unit: 'ms', better: 'lower' },
        { key: `submit_${clients}_p99`, label: `… 99 % answered within, ${who}`, unit: 'ms', better: 'lower' },
        { key: `submit_${clients}_cpu`, label: `… CPU of the server for one, ${who}`, unit: 'µs', better: 'lower' },
        { key: `submit_${clients}_generator`, label: `… the generator took, ${who}`, unit: '% of a core' },
      ] as const
    }),
  async run(target, { sizes, load, freshPrefix }) {
    const figures: Record<string, number | null> = {}
    for (const [clients, graphs] of sizes.submitGraphs) {
      await using server = await target.start()
      const { url, pid } = server
      const { warmUpGraphs } = sizes
      const job = { url, pid, clients, graphs, warmUpGraphs, prefix: freshPrefix() }
      const measure = () => load.run('submit', job)
      const result = clients === 1 && pid !== undefined ? await onOneCore([pid, load.pid], measure) : await measure()
      figures[`submit_${clients}_rate`] = result.ratePerSecond
      figures[`submit_${clients}_p50`] = result.p50Ms
      figures[`submit_${clients}_p99`] = result.p99Ms
      figures[`submit_${clients}_cpu`] = result.serverCpuMs === null ? null : result.serverCpuMs * 1000
      figures[`submit_${clients}_generator`] = result.ownCoreShare * 100
    }
    return figures
  },
}

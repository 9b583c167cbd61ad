/**
 * What a network of its own costs a task: /bin/true in a sandbox of the service, with `none` and with `host`, in alternating
 * slices of the same service.
 */
import type { ServerTarget } from '../server.ts'
import { median } from '../statistics.ts'
import type { Tools } from '../suite.ts'
import type { SandboxSizes } from './sizes.ts'
import { SANDBOX, type SandboxWorkload } from './targets.ts'

const SLICES = 6
const SLOTS = 4
const CLIENTS = 2 * SLOTS

export const network: SandboxWorkload = {
  name: 'network',
  measures: () => [
    {
      key: 'network_to_host',
      label: '/bin/true with a network of its own, 1 client: half within, to one with that of the host',
      unit: 'ratio',
      better: 'lower',
      goal: { figure: 1.1 },
    },
    { key: 'network_rate', label: `… ${SLOTS} slots, ${CLIENTS} clients`, unit: '/s', better: 'higher' },
    { key: 'network_rate_to_host', label: '… to those with that of the host', unit: 'ratio', better: 'higher' },
  ],
  run: async ({ server }, tools) => (server === undefined ? {} : await compared(server, tools)),
}

async function compared(server: ServerTarget, { sizes, load, freshPrefix }: Tools<SandboxSizes>) {
  await using running = await server.start({ fill: { slots: String(SLOTS) } })
  const { url, pid } = running
  const slice = async (kind: 'none' | 'host', clients: number, tasks: number) => {
    const sandbox = { ...SANDBOX, network: kind }
    const job = { url, pid, clients, tasks, warmUpTasks: 0, limitMs: sizes.sliceMs, sandbox, prefix: freshPrefix() }
    return await load.run('run', job)
  }
  await slice('none', 1, sizes.warmUpTasks)
  const times: number[] = []
  const rates: number[] = []
  const rateRatios: number[] = []
  for (let i = 0; i < SLICES; i++) {
    const single = { none: await slice('none', 1, sizes.singleTasks), host: await slice('host', 1, sizes.singleTasks) }
    times.push(single.none.p50Ms / single.host.p50Ms)
    const all = {
      none: await slice('none', CLIENTS, sizes.rateTasks),
      host: await slice('host', CLIENTS, sizes.rateTasks),
    }
    rates.push(all.none.ratePerSecond)
    rateRatios.push(all.none.ratePerSecond / all.host.ratePerSecond)
  }
  return { network_to_host: median(times), network_rate: median(rates), network_rate_to_host: median(rateRatios) }
}

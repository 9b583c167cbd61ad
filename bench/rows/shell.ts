/**
 * `echo` as a shell task of control, from POST until seen, and per second with four slots. The floors are loops that only
 * start it: posix_spawn for the time, Bun.spawn, which reads the output as the service does, for the rate.
 */
import type { Lifetime } from '../lifetime.ts'
import { FLOOR } from '../report.ts'
import { bunCommandLoop, commandLoop, type SpawnLoop } from '../runtime/loops.ts'
import { commandTarget, copiedProgram, quoted, type ServerTarget } from '../server.ts'
import { suiteOf, type Target, type Workload } from '../suite.ts'
import { ROUNDS, type Section } from './section.ts'
import { PROCESSES, type ProcessSizes, QUICK_PROCESSES } from './sizes.ts'

const SLOTS = 4
const CLIENTS = 2 * SLOTS
const COMMAND = ['/bin/echo', 'hello'] as const
const TASK = { type: 'shell', params: { command: 'echo', args: ['hello'] } }

interface Loops extends Target {
  readonly byC: SpawnLoop | undefined
  readonly byBun: SpawnLoop
}

const echo: Workload<ServerTarget | Loops, ProcessSizes> = {
  name: 'echo',
  measures: () => [
    {
      ...{ key: 'echo_p50', label: 'shell `echo`, 1 client: half within (floor: posix_spawn)', unit: 'ms' },
      ...{ better: 'lower', goal: { timesFloor: 1.8 } },
    },
    {
      ...{
        key: 'echo_rate',
        label: `shell \`echo\`, ${SLOTS} slots, ${CLIENTS} clients (floor: Bun.spawn)`,
        unit: '/s',
      },
      ...{ better: 'higher', goal: { timesFloor: 0.99 } },
    },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { coldTasks, warmTasks, warmUpTasks, limitMs } = sizes
    if ('byBun' in target) {
      const single = await target.byC?.run({ inFlight: 1, count: warmTasks, limitMs })
      const together = await target.byBun.run({ inFlight: SLOTS, count: coldTasks, limitMs })
      return { echo_p50: single?.p50_ms ?? null, echo_rate: together.rate_per_second }
    }
    await using server = await target.start()
    const { url } = server
    const single = { url, clients: 1, tasks: warmTasks, warmUpTasks, limitMs, task: TASK }
    const { p50Ms } = await load.run('one', { ...single, prefix: freshPrefix() })
    const together = { ...single, clients: CLIENTS, tasks: coldTasks, prefix: freshPrefix() }
    return { echo_p50: p50Ms, echo_rate: (await load.run('one', together)).ratePerSecond }
  },
}

export const shell: Section = {
  title: 'Control: shell tasks',
  suite: suiteOf({
    ...{ name: 'shell', full: PROCESSES, quick: QUICK_PROCESSES, rounds: ROUNDS, roundsMs: 25_000 },
    ...{ prepare: (_config, lifetime) => prepare(lifetime), workloads: [echo], isClosed: true },
  }),
  peers: {},
}

async function prepare(lifetime: Lifetime): Promise<(ServerTarget | Loops)[]> {
  const ours = quoted(await copiedProgram('taskmill-control', lifetime))
  const command = `${ours} --addr 127.0.0.1:{port} --data-dir {dir} --max-concurrency ${SLOTS}`
  return [
    commandTarget('taskmill', command, { healthPath: '/health', fill: {} }, lifetime),
    {
      ...{ name: FLOOR, description: 'spawn-loop.c, spawn-loop.ts' },
      byC: await commandLoop('echo-posix_spawn', COMMAND, lifetime),
      byBun: bunCommandLoop('echo-Bun.spawn', COMMAND, lifetime),
    },
  ]
}

/**
 * Measures how a queue of 10,000 tasks affects tasks that do not wait, and how long a restart with 10,000 ended tasks
 * takes.
 *
 * There are two services. In both, a tenant with a quota of one slot runs a task that sleeps. In one of them, 10,000 more
 * tasks of that tenant wait. Tasks without a tenant, for which both services have four free slots, are timed in slices
 * that alternate between the services. Then the waiting tasks are killed, and their service is restarted.
 */
import { settleDisk } from '../disk.ts'
import type { RunningServer, ServerTarget } from '../server.ts'
import { median } from '../statistics.ts'
import type { Tools, Workload } from '../suite.ts'
import type { RuntimeSizes } from './sizes.ts'
import { endTasks, submitTasks, taskIds } from './tasks.ts'

/** A tenant with a quota of one slot: while one of its tasks sleeps, its others wait. Tasks without a tenant run. */
export const HELD_TENANT = 'held'

/** The sleeping task takes one of them. */
const START = { fill: { slots: '5' } }

/** Longer than any round. The task is killed. */
const SLEEP_SECONDS = '600'

const SLICES = 3
const CLIENTS = 8

export const queue: Workload<ServerTarget, RuntimeSizes> = {
  name: 'queue',
  measures: ({ waitingTasks }) => {
    const count = waitingTasks.toLocaleString('en')
    return [
      { key: 'queue_empty_p50', label: '/bin/true, 1 client, empty queue: half within', unit: 'ms', better: 'lower' },
      { key: 'queue_full_p50', label: `… ${count} tasks in the queue`, unit: 'ms', better: 'lower' },
      { key: 'queue_p50_ratio', label: '… one by the other', unit: 'ratio', better: 'lower', goal: { figure: 1.1 } },
      {
        key: 'queue_empty_rate',
        label: `/bin/true, 4 slots, ${CLIENTS} clients, empty queue`,
        unit: '/s',
        better: 'higher',
      },
      { key: 'queue_full_rate', label: `… ${count} tasks in the queue`, unit: '/s', better: 'higher' },
      { key: 'queue_rate_ratio', label: '… one by the other', unit: 'ratio', better: 'higher', goal: { figure: 0.9 } },
      { key: 'queue_restart', label: `ready after a restart with ${count} ended tasks`, unit: 'ms', better: 'lower' },
    ]
  },
  async run(target, tools) {
    const { sizes, freshPrefix } = tools
    await using empty = await target.start(START)
    // A server that runs already cannot be had twice, nor started again.
    if (empty.dataDir === undefined || !(await hasQuotas(empty))) return {}
    await using full = await target.start(START)
    const control_context = { tenant: HELD_TENANT }
    const sleeper = taskIds(freshPrefix(), 1)
    const sleep = { kind: 'command' as const, program: '/bin/sleep', args: [SLEEP_SECONDS] }
    for (const { url } of [empty, full]) await submitTasks(url, sleeper, { execution: sleep, control_context })
    const waiting = taskIds(freshPrefix(), sizes.waitingTasks)
    await submitTasks(full.url, waiting, { execution: { kind: 'command', program: '/bin/true' }, control_context })

    settleDisk(empty.dataDir)
    const slices: { empty: Slice; full: Slice }[] = []
    for (const { url } of [empty, full]) await warmUp(url, tools)
    for (let i = 0; i < SLICES; i++)
      slices.push({ empty: await timed(empty.url, tools), full: await timed(full.url, tools) })

    await endTasks(empty.url, sleeper)
    await endTasks(full.url, [...waiting, ...sleeper])
    await full.stop()
    settleDisk(empty.dataDir)
    await using again = await target.start({ ...START, dataDir: full.dataDir })
    return {
      queue_empty_p50: median(slices.map((slice) => slice.empty.p50Ms)),
      queue_full_p50: median(slices.map((slice) => slice.full.p50Ms)),
      queue_p50_ratio: median(slices.map((slice) => slice.full.p50Ms / slice.empty.p50Ms)),
      queue_empty_rate: median(slices.map((slice) => slice.empty.ratePerSecond)),
      queue_full_rate: median(slices.map((slice) => slice.full.ratePerSecond)),
      queue_rate_ratio: median(slices.map((slice) => slice.full.ratePerSecond / slice.empty.ratePerSecond)),
      queue_restart: again.readyMs ?? null,
    }
  },
}

/** A floor has no quotas, so its other tasks would wait too. */
const hasQuotas = async ({ url }: RunningServer): Promise<boolean> =>
  (await fetch(`${url}/api/v1/runtime/resources`)).ok

/** Figures of one slice. */
interface Slice {
  readonly p50Ms: number
  readonly ratePerSecond: number
}

const warmUp = (url: string, { sizes, load, freshPrefix }: Tools<RuntimeSizes>) =>
  load.run('run', {
    ...{ url, clients: CLIENTS, prefix: freshPrefix() },
    ...{ tasks: sizes.warmUpTasks, warmUpTasks: 0, limitMs: sizes.limitMs },
  })

async function timed(url: string, { sizes, load, freshPrefix }: Tools<RuntimeSizes>): Promise<Slice> {
  const { singleTasks, rateTasks } = sizes
  const job = { url, warmUpTasks: 0, limitMs: sizes.limitMs / SLICES }
  const single = { ...job, clients: 1, tasks: Math.ceil(singleTasks / SLICES), prefix: freshPrefix() }
  const together = { ...job, clients: CLIENTS, tasks: Math.ceil(rateTasks / SLICES), prefix: freshPrefix() }
  const { p50Ms } = await load.run('run', single)
  const { ratePerSecond } = await load.run('run', together)
  return { p50Ms, ratePerSecond }
}

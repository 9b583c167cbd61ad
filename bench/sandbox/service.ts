/**
 * /bin/true in a sandbox of the service, from POST to the answer `success`, compared with a C loop that starts bwrap.
 * The service makes its tasks durable, accounts for them and limits them; bwrap does none of that. Both are timed in
 * alternating slices, so that each ratio compares moments close to each other.
 */

import type { Figures } from '../measure.ts'
import type { LoopResult, SpawnLoop } from '../runtime/loops.ts'
import { median } from '../statistics.ts'
import type { Tools } from '../suite.ts'
import type { SandboxSizes } from './sizes.ts'
import { SANDBOX, type SandboxTarget, type SandboxWorkload } from './targets.ts'

const SLICES = 4
const SLOTS = 4

/** Twice as many clients as slots, so that the next task always waits. */
const CLIENTS = 2 * SLOTS

interface Load {
  /** `name_p50` and `name_rate` are the figures of every target. */
  readonly name: 'single' | 'rate'
  readonly clients: number
  readonly inFlight: number
}

/** The figure of a slice, of the service or of a loop. */
type FigureOf = (load: Load, slice: { p50Ms: number; ratePerSecond: number }) => number
const figureOf: FigureOf = ({ name }, { p50Ms, ratePerSecond }) => (name === 'single' ? p50Ms : ratePerSecond)

/** One client: how long a task takes. */
export const single: SandboxWorkload = {
  name: 'single',
  measures: () => [
    { key: 'single', label: '/bin/true, 1 client, POST to success seen: half within', unit: 'ms', better: 'lower' },
    { key: 'single_to_bwrap', label: '… to a bare bwrap', unit: 'ratio', better: 'lower', goal: { figure: 0.5 } },
  ],
  run: (target, tools) => compared({ name: 'single', clients: 1, inFlight: 1 }, target, tools),
}

/** As many as there can be: how many a second. */
export const rate: SandboxWorkload = {
  name: 'rate',
  measures: () => [
    { key: 'rate', label: `/bin/true, ${SLOTS} slots, ${CLIENTS} clients`, unit: '/s', better: 'higher' },
    {
      key: 'rate_to_bwrap',
      label: `… to ${SLOTS} bare bwraps at a time`,
      unit: 'ratio',
      better: 'higher',
      goal: { figure: 2.5 },
    },
  ],
  run: (target, tools) => compared({ name: 'rate', clients: CLIENTS, inFlight: SLOTS }, target, tools),
}

async function compared(
  load: Load,
  { server, loop, rival }: SandboxTarget,
  tools: Tools<SandboxSizes>,
): Promise<Figures> {
  if (server === undefined) {
    const figures: number[] = []
    for (let i = 0; i < SLICES && loop !== undefined; i++) figures.push(await ofLoop(load, loop, tools))
    return { [load.name]: figures.length === 0 ? null : median(figures) }
  }
  await using running = await server.start({ fill: { slots: String(SLOTS) } })
  const { url, pid } = running
  const { warmUpTasks } = tools.sizes
  await ofService({ ...load, clients: 1 }, { url, pid }, warmUpTasks, tools)
  const slices: { ours: number; bwraps: number | null }[] = []
  for (let i = 0; i < SLICES; i++) {
    slices.push({
      bwraps: rival?.loop === undefined ? null : await ofLoop(load, rival.loop, tools),
      ours: await ofService(load, { url, pid }, countOf(load, tools.sizes), tools),
    })
  }
  const ratios = slices.flatMap(({ ours, bwraps }) => (bwraps === null ? [] : [ours / bwraps]))
  return {
    [load.name]: median(slices.map(({ ours }) => ours)),
    [`${load.name}_to_bwrap`]: ratios.length === 0 ? null : median(ratios),
  }
}

const countOf = ({ name }: Load, { singleTasks, rateTasks }: SandboxSizes) =>
  name === 'single' ? singleTasks : rateTasks

async function ofService(
  load: Load,
  aim: { url: string; pid: number | undefined },
  tasks: number,
  { sizes, load: generator, freshPrefix }: Tools<SandboxSizes>,
): Promise<number> {
  const job = { ...aim, clients: load.clients, tasks, warmUpTasks: 0, limitMs: sizes.sliceMs }
  return figureOf(load, await generator.run('run', { ...job, sandbox: SANDBOX, prefix: freshPrefix() }))
}

async function ofLoop(load: Load, loop: SpawnLoop, { sizes }: Tools<SandboxSizes>): Promise<number> {
  const job = { inFlight: load.inFlight, count: countOf(load, sizes), limitMs: sizes.sliceMs }
  const { p50_ms, rate_per_second }: LoopResult = await loop.run(job)
  return figureOf(load, { p50Ms: p50_ms, ratePerSecond: rate_per_second })
}

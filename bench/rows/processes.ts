/**
 * `/bin/true` through the runtime service: the first 1,000 tasks after a start (cold) and those that follow (warm), from
 * 1 client, and with 4 and 16 slots. A peer is a loop, which has no cold part: it starts with the first of its tasks.
 */
import type { SandboxPolicy } from '../../shared/contract/runtime-request.ts'
import type { Figures, Measure } from '../measure.ts'
import type { SpawnLoop } from '../runtime/loops.ts'
import type { ServerTarget } from '../server.ts'
import type { Target, Workload } from '../suite.ts'
import type { ProcessSizes } from './sizes.ts'

const SLOTS = [4, 16] as const

/** Slots with which the CPU time of a task is measured. */
const CPU_SLOTS = 4

/** A service, and the program that it is asked to run. */
export interface Service extends Target {
  readonly server: ServerTarget
  readonly sandbox?: SandboxPolicy
  readonly command?: readonly [string, ...string[]]
}

export interface LoopPeer extends Target {
  readonly loop: SpawnLoop
  /** Before each load. */
  readonly setSlots?: (slots: number) => Promise<void>
}

export type ProcessTarget = Service | LoopPeer

export interface ProcessGoals {
  readonly p50: number
  readonly rate: number
  readonly cpu: number
}

/** `what` names the task in the labels, `goals` are multiples of the floor's figures. */
export const processes = (what: string, goals: ProcessGoals): Workload<ProcessTarget, ProcessSizes> => ({
  name: 'true',
  measures: ({ coldTasks }) => [
    ...(['cold', 'warm'] as const).flatMap((state): Measure[] => {
      const first = state === 'cold' ? `first ${coldTasks.toLocaleString('en')} after a start` : 'warm'
      return [
        {
          ...{ key: `p50_${state}`, label: `${what}, 1 client, ${first}: half within`, unit: 'ms', better: 'lower' },
          goal: { timesFloor: goals.p50 },
        },
        ...SLOTS.map(
          (slots): Measure => ({
            ...{
              key: `rate_${slots}_${state}`,
              label: `${what}, ${slots} slots, ${slots * 2} clients, ${first}`,
              unit: '/s',
            },
            ...{ better: 'higher', goal: { timesFloor: goals.rate } },
          }),
        ),
      ]
    }),
    {
      ...{
        key: 'cpu',
        label: `${what}, ${CPU_SLOTS} slots, warm: CPU of all processes for one`,
        unit: 'µs',
        better: 'lower',
      },
      goal: { timesFloor: goals.cpu },
    },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { coldTasks, warmTasks, limitMs } = sizes
    const figures: Record<string, number | null> = {}
    for (const slots of [1, ...SLOTS]) {
      const name = (state: string) => (slots === 1 ? `p50_${state}` : `rate_${slots}_${state}`)
      if ('loop' in target) {
        await target.setSlots?.(slots)
        const result = await target.loop.run({ inFlight: slots, count: warmTasks, limitMs })
        figures[name('warm')] = slots === 1 ? result.p50_ms : result.rate_per_second
        continue
      }
      const { sandbox, command } = target
      await using server = await target.server.start({ fill: { slots: String(slots) } })
      const { url, pid } = server
      const asked = { ...(sandbox !== undefined && { sandbox }), ...(command !== undefined && { command }) }
      const job = { url, pid, clients: slots === 1 ? 1 : slots * 2, warmUpTasks: 0, limitMs, ...asked }
      for (const [state, tasks] of [
        ['cold', coldTasks],
        ['warm', warmTasks],
      ] as const) {
        const result = await load.run('run', { ...job, tasks, prefix: freshPrefix() })
        figures[name(state)] = slots === 1 ? result.p50Ms : result.ratePerSecond
        if (slots === CPU_SLOTS && state === 'warm')
          figures.cpu = 1_000 * (result.serverCpuMs! + result.serverChildrenCpuMs!)
      }
    }
    return figures satisfies Figures
  },
})

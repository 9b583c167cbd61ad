/** What a run of the bench may be told, and how much work each of its two sizes is. */
import { Expected, integer, list, type Setting, type SettingValues, text } from '../shared/flags.ts'

/** One server that somebody else brings: its name in the table, and what stands after the `=`. */
export interface NamedServer {
  readonly name: string
  readonly value: string
}

/** `name=value`, repeatable. A value may hold commas, as long as no `name=` follows one. */
const named = (setting: { help: string; value: string }): Setting<readonly NamedServer[]> => ({
  ...setting,
  repeatable: true,
  parse: (given) => {
    const entries = given.split(/,(?=[\w.+-]+=)/).map((entry) => /^([\w.+-]+)=(.+)$/s.exec(entry))
    if (entries.includes(null)) return new Expected(setting.value)
    return entries.map((entry) => ({ name: entry![1]!, value: entry![2]! }))
  },
  absent: [],
})

const flag = (help: string): Setting<boolean> => ({
  help,
  isSwitch: true,
  parse: (given) => (given === 'true' || given === 'false' ? given === 'true' : new Expected('true or false')),
  absent: false,
})

export const benchSettings = {
  rounds: integer({
    default: '5',
    value: 'number',
    min: 1,
    max: 50,
    help: 'How often each workload runs on each server, taking turns; the table shows medians. --quick: always 1.',
  }),
  quick: flag('A smoke run of one round with small sizes. Its figures mean little.'),
  only: list({ value: 'workload', help: 'Runs only these workloads.' }),
  server: named({ value: 'name=URL', help: 'Also measures a server that runs already; it is not restarted.' }),
  command: named({
    value: 'name=COMMAND',
    help: 'Also measures a server that this shell command starts. {port}, {dir} and {persist} are filled in: the port on 127.0.0.1, an empty directory, and the wanted time between two writes of its state file (24h or 1500ms).',
  }),
  out: text({ value: 'directory', help: 'Where latest.md and latest.json go. Default: results/ beside the bench.' }),
}

export type BenchConfig = SettingValues<typeof benchSettings>

/** How much of everything. Fewer graphs would measure the start of the JIT, more would take longer and say the same. */
export interface Sizes {
  /** Clients at the same time to graphs submitted by all of them together. */
  readonly submitGraphs: ReadonlyMap<number, number>
  /** Graphs that make a fresh server warm before the clock starts. */
  readonly warmUpGraphs: number
  readonly healthRequests: number
  /** Tasks of the small wide graph and of the chain. */
  readonly smallTasks: number
  /** Runs of each small graph on one server, and runs before them that do not count. */
  readonly smallRepeats: number
  readonly smallWarmUps: number
  /** Tasks of the large wide graph. */
  readonly largeTasks: number
  /** Milliseconds of quiet before kept memory is read: a garbage collection and what it gives back take that long. */
  readonly settleMs: number
  /** Milliseconds between two writes of the state file while its stall is measured. */
  readonly persistMs: number
  readonly starts: number
}

export const FULL: Sizes = {
  submitGraphs: new Map([
    [1, 4_000],
    [8, 12_000],
    [32, 12_000],
  ]),
  warmUpGraphs: 2_000,
  healthRequests: 40_000,
  smallTasks: 1_000,
  smallRepeats: 30,
  smallWarmUps: 40,
  largeTasks: 100_000,
  settleMs: 1_200,
  persistMs: 1_500,
  starts: 5,
}

export const QUICK: Sizes = {
  submitGraphs: new Map([
    [1, 200],
    [8, 400],
    [32, 400],
  ]),
  warmUpGraphs: 100,
  healthRequests: 1_000,
  smallTasks: 100,
  smallRepeats: 3,
  smallWarmUps: 1,
  largeTasks: 5_000,
  settleMs: 100,
  persistMs: 300,
  starts: 2,
}

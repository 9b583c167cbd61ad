/** The settings of the bench. */
import {
  Expected,
  flag,
  list,
  optionalInteger,
  type Setting,
  type SettingValues,
  text,
} from '../shared/settings/flags.ts'

/** A server of `--server` or `--command`: its name in the table, and the text after the `=`. */
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

export const benchSettings = {
  rounds: optionalInteger({
    value: 'number',
    min: 1,
    max: 50,
    help: 'How often each workload runs on each server, taking turns; the table shows medians. Without it: 5, or as many as there is time for. --quick: always 1.',
  }),
  quick: flag({ help: 'A smoke run of one round with small sizes. Its figures mean little.' }),
  only: list({ value: 'workload', help: 'Runs only these workloads.' }),
  server: named({ value: 'name=URL', help: 'Also measures a server that runs already; it is not restarted.' }),
  command: named({
    value: 'name=COMMAND',
    help: 'Also measures a server that this shell command starts, in the suite that is named. {port} and {dir} are filled in, the port on 127.0.0.1 and an empty directory; for control {persist}, the wanted time between two writes of its state file (24h or 1500ms); for the runtime service {slots}, how many tasks may run at the same time, and {retention}, how many seconds a task is kept.',
  }),
  runs: optionalInteger({
    value: 'number',
    min: 1,
    max: 10,
    help: 'Of the report: how often all of its rows are measured; it has medians and ranges of the runs. Default: 1.',
  }),
  peers: text({
    value: 'directory',
    help: 'Of the report: a directory in which bullmq and ioredis were installed from npm, to measure them beside ours if redis-server is there, too.',
  }),
  out: text({
    value: 'directory',
    help: 'Where the reports go, a .md and a .json for each suite. Default: results/ beside the bench.',
  }),
}

export type BenchConfig = SettingValues<typeof benchSettings>

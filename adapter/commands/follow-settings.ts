/** The settings of subcommands that follow a graph. */
import { choice, duration, flag, type SettingValues } from '../../shared/settings/flags.ts'
import type { ShowSettings } from '../follow/show.ts'

const DAY_MS = 86_400_000

export const followSettings = {
  logs: choice({
    default: 'all',
    choices: ['all', 'errors', 'none'],
    help: 'Output of tasks on standard error: while they run, only that of tasks that failed, or none.',
  }),
  quiet: flag({ letter: 'q', help: 'Show only why the graph failed, and the output of tasks if --logs is given.' }),
  timeout: duration({
    default: '0s',
    minMs: 0,
    maxMs: 30 * DAY_MS,
    help: 'Maximum time to follow the graph; 0s: no limit. Then the exit code is 3, and the graph continues.',
  }),
}

/** What to show. `given`: the settings that a flag gives. */
export const showSettings = (
  { logs, quiet, timeout }: SettingValues<typeof followSettings>,
  given: ReadonlySet<string>,
): ShowSettings => ({ logs: quiet && !given.has('logs') ? 'none' : logs, quiet, timeout })

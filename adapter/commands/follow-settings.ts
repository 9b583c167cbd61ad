/** The settings of subcommands that follow a graph. */
import { duration } from '../../shared/settings/flags.ts'

const DAY_MS = 86_400_000

export const followSettings = {
  timeout: duration({
    default: '0s',
    minMs: 0,
    maxMs: 30 * DAY_MS,
    help: 'Maximum time to follow the graph; 0s: no limit. Then the exit code is 3, and the graph continues.',
  }),
}

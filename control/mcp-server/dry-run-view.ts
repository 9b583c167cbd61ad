/** The findings of a dry run as `submit_graph` shows them: small. Pure. */
import type { GraphDryRun } from '../../shared/contract/graph-dry-run.ts'
import type { SubmitGraphAnswer } from '../../shared/contract/mcp-answers.ts'
import { MAX_SHOWN_TASKS } from '../../shared/contract/mcp-limits.ts'
import { ResultRoom } from './view.ts'

export function dryRunView({ valid, errors, warnings, waves, critical_path, ...more }: GraphDryRun): SubmitGraphAnswer {
  const room = new ResultRoom()
  const plans = Object.entries(more.runtime)
  const shown = {
    errors: errors.slice(0, MAX_SHOWN_TASKS),
    waves: firstIds(waves),
    critical_path: critical_path.slice(0, MAX_SHOWN_TASKS),
    runtime: Object.fromEntries(plans.filter(([, plan]) => room.takes(plan))),
  }
  const isTruncated =
    more.truncated ||
    shown.errors.length < errors.length ||
    shown.critical_path.length < critical_path.length ||
    shown.waves.length < waves.length ||
    shown.waves.at(-1)?.length !== waves.at(-1)?.length ||
    Object.keys(shown.runtime).length < plans.length
  return {
    valid,
    ...shown,
    ...(warnings.length > 0 && { warnings: [...warnings] }),
    ...(isTruncated && { truncated: true }),
  }
}

/** The first `MAX_SHOWN_TASKS` ids, wave by wave. */
function firstIds(waves: GraphDryRun['waves']): string[][] {
  const shown: string[][] = []
  let left = MAX_SHOWN_TASKS
  for (const wave of waves) {
    if (left === 0) break
    shown.push(wave.slice(0, left))
    left -= shown.at(-1)!.length
  }
  return shown
}

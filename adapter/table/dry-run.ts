/** The findings of a dry run as text. Pure. */
import type { GraphDryRun, GraphFault, TaskPlan, TimeLimits } from '../../shared/contract/graph-dry-run.ts'
import { alignedFields, alignedRows, type Cell } from './columns.ts'
import type { Look } from './look.ts'
import { timeTaken } from './words.ts'

/** Ids of a wave or a chain in one line. */
const MAX_IDS = 20

export function dryRunTable({ valid, errors, warnings, ...found }: GraphDryRun, look: Look): string[] {
  const { waves, critical_path, runtime, time_limits, truncated } = found
  const fields: [string, Cell][] = [
    ['valid', { text: valid ? 'yes' : 'no', style: valid ? 'green' : 'red' }],
    ['longest', { text: critical_path.length === 0 ? '' : `${critical_path.length}: ${idList(critical_path, ' > ')}` }],
  ]
  const blocks = [
    messageRows('ERROR', errors, look),
    messageRows('WARNING', warnings, look),
    waveRows(waves, look),
    planRows(runtime, look),
    limitRows(time_limits ?? {}, look),
    truncated ? [look.paint('dim', 'there is more than is shown')] : [],
  ]
  return [
    ...alignedFields(
      fields.filter(([, { text }]) => text !== ''),
      look,
    ),
    ...blocks.flatMap((lines) => (lines.length === 0 ? [] : ['', ...lines])),
  ]
}

const messageRows = (name: 'ERROR' | 'WARNING', messages: readonly GraphFault[], look: Look): string[] =>
  messages.length === 0
    ? []
    : alignedRows(
        ['TASK', name],
        messages.map(({ task_id = '', message }) => [
          { text: task_id },
          { text: message, style: name === 'ERROR' ? 'red' : 'yellow' },
        ]),
        look,
      )

const waveRows = (waves: GraphDryRun['waves'], look: Look): string[] =>
  waves.length === 0
    ? []
    : alignedRows(
        ['WAVE', 'TASKS', 'IDS'],
        waves.map((ids, index) => [
          { text: String(index + 1), isRight: true },
          { text: String(ids.length), isRight: true },
          { text: idList(ids, ', ') },
        ]),
        look,
      )

function planRows(runtime: GraphDryRun['runtime'], look: Look): string[] {
  const rows = Object.entries(runtime).map(([id, plan]): Cell[] => [{ text: id }, planCell(plan)])
  return rows.length === 0 ? [] : alignedRows(['RUNTIME TASK', 'PLAN'], rows, look)
}

/** A clock runs while an attempt waits for a place, the other one from then on. */
const limitRows = (limits: Readonly<Record<string, TimeLimits>>, look: Look): string[] => {
  const rows = Object.entries(limits).map(([id, { queue_timeout, timeout }]): Cell[] => [
    { text: id },
    limitCell(queue_timeout),
    limitCell(timeout),
  ])
  return rows.length === 0 ? [] : alignedRows(['TASK', 'WAITS AT MOST', 'THEN RUNS AT MOST'], rows, look)
}

const limitCell = (ms: number | undefined): Cell =>
  ms === undefined ? { text: 'any time', style: 'dim' } : { text: timeTaken(ms) }

function planCell({ execution_plan: plan, error }: TaskPlan): Cell {
  if (plan === undefined) return { text: error ?? '', style: 'red' }
  if (plan.degraded)
    return { text: `degraded: ${[...plan.fallback_reasons, ...plan.capability_warnings].join('; ')}`, style: 'yellow' }
  const warnings = plan.capability_warnings
  return warnings.length > 0
    ? { text: `as asked for, but ${warnings.join('; ')}`, style: 'yellow' }
    : { text: 'as asked for' }
}

const idList = (ids: readonly string[], separator: string): string =>
  ids.slice(0, MAX_IDS).join(separator) + (ids.length > MAX_IDS ? ` and ${ids.length - MAX_IDS} more` : '')

/** Runtime services as text. Pure. */
import type { RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { alignedRows, type Cell } from './columns.ts'
import type { Look } from './look.ts'
import { timeAgo } from './words.ts'

type Listed = RuntimesResponse['runtimes'][number]

export function runtimesTable(runtimes: readonly Listed[], look: Look): string[] {
  if (runtimes.length === 0) return [look.paint('dim', 'no runtime services')]
  const rows = runtimes.map((runtime): Cell[] => [
    { text: runtime.name, style: 'bold' },
    stateOf(runtime, look),
    { text: tasksOf(runtime), isRight: true },
    { text: runtime.queued === undefined ? '' : String(runtime.queued), isRight: true },
    { text: String(runtime.attempts), isRight: true },
    { text: labelsOf(runtime), style: 'dim' },
    { text: runtime.url, style: 'dim' },
  ])
  return alignedRows(['NAME', 'STATE', 'TASKS', 'QUEUED', 'ATTEMPTS', 'LABELS', 'URL'], rows, look)
}

function stateOf({ state, draining, away_since }: Listed, look: Look): Cell {
  if (state === 'away') {
    const since = away_since === undefined ? '' : `, ${timeAgo(away_since, look.nowMs)}`
    return { text: `${draining ? 'draining, ' : ''}away${since}`, style: 'red' }
  }
  return draining ? { text: 'draining', style: 'yellow' } : { text: 'ready', style: 'green' }
}

const tasksOf = ({ capacity, reserved }: Listed): string =>
  capacity === undefined || reserved === undefined ? '' : `${reserved.task_slots} of ${capacity.task_slots}`

const labelsOf = ({ labels }: Listed): string =>
  Object.entries(labels)
    .map(([name, value]) => (value === '' ? name : `${name}=${value}`))
    .join(', ')

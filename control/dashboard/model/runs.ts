/** Runs of one graph beside one another: graphs of the same name, or any that a user chose. Pure. */
import { durationText } from './amounts.ts'
import type { GraphDetails, GraphSummary, GraphTask } from './wire.ts'

/** Graphs of one name and tenant: the newest last. */
export interface NamedRuns {
  readonly name: string
  readonly tenant: string | undefined
  readonly runs: readonly GraphSummary[]
}

/** The names of `graphs`, which come the newest first, in the order of their newest run, each with at most `most` runs. */
export function runsByName(graphs: readonly GraphSummary[], most: number): NamedRuns[] {
  const byName = new Map<string, { name: string; tenant: string | undefined; runs: GraphSummary[] }>()
  for (const graph of graphs) {
    const { name, tenant } = graph
    if (name === undefined) continue
    const key = `${tenant ?? ''} ${name}` // no tenant has a space in its name
    const known = byName.get(key)
    if (known === undefined) byName.set(key, { name, tenant, runs: [graph] })
    else if (known.runs.length < most) known.runs.push(graph)
  }
  return [...byName.values()].map(({ runs, ...named }) => ({ ...named, runs: runs.toReversed() }))
}

/** One task in each run. Undefined where a run has no task of this id. */
export interface TaskOverRuns {
  readonly id: string
  readonly tasks: readonly (GraphTask | undefined)[]
}

/** The tasks of `runs`, in the order of the newest run that has them. Children stand for themselves in no row. */
export function tasksOverRuns(runs: readonly (GraphDetails | undefined)[]): TaskOverRuns[] {
  const byId = new Map<string, (GraphTask | undefined)[]>()
  for (let at = runs.length - 1; at >= 0; at--) {
    for (const task of runs[at]?.tasks ?? []) {
      if (task.parent !== undefined) continue
      const row = byId.get(task.id) ?? new Array<GraphTask | undefined>(runs.length).fill(undefined)
      row[at] = task
      byId.set(task.id, row)
    }
  }
  return [...byId].map(([id, tasks]) => ({ id, tasks }))
}

/** How the second of two runs of a task differs: `failed`, `+2.1 s`, `new`. Empty: not at all. */
export function differenceText([before, after]: readonly (GraphTask | undefined)[]): string {
  if (before === undefined || after === undefined) return after === undefined ? 'gone' : 'new'
  if (before.status !== after.status) return `${before.status} → ${after.status}`
  if (before.duration_ms === undefined || after.duration_ms === undefined) return ''
  const byMs = after.duration_ms - before.duration_ms
  return byMs === 0 ? '' : `${byMs > 0 ? '+' : '−'}${durationText(Math.abs(byMs))}`
}

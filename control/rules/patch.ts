/**
 * What a patch makes of the tasks of a graph. Pure.
 *
 * A change of a field is a replacement by the task with that field. So a patch adds and removes tasks, and nothing else: a task
 * that is replaced keeps its place, and new ones come last. Whether the result is a graph is checked as a submission is.
 */
import { isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { quoted } from '../../shared/request/unknown-names.ts'

/** A task as far as a patch goes. */
export interface PatchedTask {
  readonly id?: string | null | undefined
}

/** Fields of a waiting task that `change` may set; null takes a field away. */
export const CHANGEABLE_FIELDS = ['params', 'timeout', 'retry', 'priority'] as const

export interface Patch<T extends PatchedTask> {
  readonly add?: readonly T[]
  readonly remove?: readonly string[]
  readonly replace?: readonly T[]
  readonly change?: Readonly<Record<string, Partial<T>>>
}

export interface Patched<T extends PatchedTask> {
  /** All tasks of the graph, in order. */
  readonly tasks: readonly T[]
  /** Ids of tasks that are gone, of those that have another definition, and of those that are new. */
  readonly removed: ReadonlySet<string>
  readonly replaced: ReadonlyMap<string, T>
  readonly added: readonly T[]
}

/**
 * Applies `patch` to the `tasks` of a graph. `whyFixed` says why a task cannot be taken away or replaced any more. Returns the
 * first fault: a name of no task, a task that is named twice, a field that cannot be changed, or that of `whyFixed`.
 */
export function patched<T extends PatchedTask>(
  tasks: readonly T[],
  { add = [], remove = [], replace = [], change = {} }: Patch<T>,
  whyFixed: (id: string) => string | undefined,
): Patched<T> | { readonly fault: string } {
  const known = new Map(tasks.map((task) => [task.id, task]))
  const named = new Map<string, string>()
  const removed = new Set(remove)
  const replaced = new Map<string, T>()
  const faultOf = (id: string, place: string): string | undefined => {
    const before = named.get(id)
    if (before !== undefined) return `${place}: task ${id} is in ${before}, too: name it once`
    named.set(id, place)
    return known.has(id) ? whyFixed(id) : `${place}: the graph has no task ${quoted(id)}`
  }
  for (const id of remove) {
    const fault = faultOf(id, 'remove')
    if (fault !== undefined) return { fault }
  }
  for (const task of replace) {
    const fault = faultOf(String(task.id), 'replace')
    if (fault !== undefined) return { fault }
    replaced.set(task.id!, task)
  }
  for (const [id, fields] of Object.entries(change)) {
    const fault = faultOf(id, 'change') ?? fieldFault(id, fields)
    if (fault !== undefined) return { fault }
    replaced.set(id, { ...known.get(id)!, ...fields })
  }
  const kept = tasks.filter(({ id }) => !removed.has(id!)).map((task) => replaced.get(task.id!) ?? task)
  return { tasks: [...kept, ...add], removed, replaced, added: add }
}

function fieldFault(id: string, fields: object): string | undefined {
  const names: readonly string[] = CHANGEABLE_FIELDS
  const other = Object.keys(fields).find((name) => !names.includes(name))
  return other === undefined
    ? undefined
    : `change: ${quoted(other)} of task ${id} is none of ${names.join(', ')}: replace the task`
}

/**
 * The positions of `starts` and all that are reached from them over `nextOf`, each with one start that leads to it. An approval
 * decides about what depends on it, directly or not: whoever may not answer it must not replace that, because the answer was,
 * or will be, given for what the task is now. Asks for each position once, because a patch may be for a graph of a million tasks
 * with as many approvals.
 */
export function* reachedFrom(
  nextOf: (position: number) => Iterable<number>,
  starts: Iterable<number>,
): Steps<ReadonlyMap<number, number>> {
  const reached = new Map<number, number>()
  for (const start of starts) {
    const open = [start]
    for (let position = open.pop(); position !== undefined; position = open.pop()) {
      if (reached.has(position)) continue
      reached.set(position, start)
      for (const next of nextOf(position)) open.push(next)
      if (isYieldDue(reached.size)) yield
    }
  }
  return reached
}

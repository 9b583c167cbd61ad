/**
 * Builds the children of tasks with `for_each` from what a restart finds. Pure.
 *
 * A child belongs to its parent. One whose parent was deleted is deleted, and one that has not ended though its parent has
 * is cancelled: the end of the service came between the two. A child without an entry was deleted.
 */
import { runSync } from '../../shared/process/steps.ts'
import { childId } from '../rules/child-ids.ts'
import { listSource } from '../rules/fan-out-rule.ts'
import { cancelled } from '../task/attempt-record.ts'
import { FanOut, type Graph, newChildren, type Task } from '../task/graph.ts'
import { restoreTask } from './restored-task.ts'
import type { StoredTask } from './stored-task.ts'

type Visit = (entry: StoredTask, task: Task) => void

/** Adds the children to `graph`, which has all other tasks. Calls `visit` with each that has an entry in `children`. */
export function addFanOuts(
  graph: Graph,
  parents: readonly { readonly task: Task; readonly entry: StoredTask }[],
  children: ReadonlyMap<string, StoredTask>,
  visit: Visit,
): void {
  for (const { task, entry } of parents) {
    const count = countOf(task, entry)
    if (count === undefined) continue
    const fanOut: FanOut = new FanOut(task, task.isTerminal ? undefined : itemsOf(task, entry), count)
    task.fanOut = fanOut
    const tasks = runSync(newChildren(fanOut))
    graph.addChildren(fanOut, tasks)
    fanOut.open = 0
    for (let i = 0; i < count; i++) {
      const child = tasks[i]!
      addChild(child, children.get(childId(task.id, i)), visit)
      if (!isLive(child)) continue
      graph.live++
      fanOut.open++
    }
  }
}

/**
 * The children that are deleted only because their parents are: the end of the service came before their own deletion was
 * written, so nobody was told of it.
 */
export function deletedWithParents(stored: readonly StoredTask[]): StoredTask[] {
  if (stored.every(({ parent }) => parent === undefined)) return []
  const parents = new Map(stored.filter(({ for_each }) => for_each != null).map((entry) => [entry.id, entry]))
  const isUntold = ({ parent, deleted }: StoredTask): boolean => {
    if (parent === undefined || deleted) return false
    const known = parents.get(parent)
    if (known === undefined) return true // a state file was written in between
    return known.deleted === true && known.child_count !== undefined // otherwise callers never saw children of it
  }
  return stored.filter(isUntold)
}

function addChild(child: Task, entry: StoredTask | undefined, visit: Visit): void {
  const { parent } = child.childOf!
  const { hasPlaceholders } = child.rare
  if (entry === undefined) {
    child.removal = 'deleted'
    return
  }
  restoreTask(child, entry)
  child.setRare('hasPlaceholders', child.isTerminal ? undefined : hasPlaceholders)
  if (entry.deleted || parent.isDeleted) child.removal = 'deleted'
  if (!child.isTerminal && parent.isTerminal && !child.isDeleted) cancelWith(child, parent)
  visit(entry, child)
}

function cancelWith(child: Task, parent: Task): void {
  const failure = (parent.status === 'cancelled' && parent.rare.failure) || cancelled()
  child.status = 'cancelled'
  child.setRare('failure', failure)
  child.setRare('error', failure.message)
  child.finishedAt = parent.finishedAt ?? parent.createdAt
}

const isLive = (task: Task): boolean => !task.isTerminal && (!task.isDeleted || task.goesOnElsewhere)

/** Undefined for a task that has no children: its list was written to the journal, but the task did not come to run. */
function countOf(task: Task, { child_count, fan_out }: StoredTask): number | undefined {
  if (task.options.for_each === undefined) return undefined
  return child_count ?? (task.isTerminal || task.isDeleted ? undefined : fan_out?.count)
}

/** The elements for which children may still run. */
function itemsOf(task: Task, { fan_out }: StoredTask): readonly unknown[] {
  if (fan_out?.items !== undefined) return fan_out.items
  const source = listSource(task.options.for_each)
  if (typeof source === 'string' || source.kind === 'reference') return []
  const list = source.kind === 'list' ? source.list : task.graph.options.params?.[source.name]
  return Array.isArray(list) ? list : []
}

/**
 * Builds the children of tasks with `for_each`, and of groups, from what a restart finds. Pure.
 *
 * A child belongs to its parent. One whose parent was deleted is deleted, and one that has not ended though its parent has
 * is cancelled: the end of the service came between the two. A child without an entry was deleted.
 */
import { runSync } from '../../shared/process/steps.ts'
import { listSource } from '../rules/fan-out-rule.ts'
import { hasChildren } from '../rules/group-rule.ts'
import { cancelled } from '../task/attempt-record.ts'
import { FanOut } from '../task/fan-out.ts'
import type { Graph, Task } from '../task/graph.ts'
import { newChildren } from '../task/new-children.ts'
import { restoreTask } from './restored-task.ts'
import type { SettledDependency, StoredTask } from './stored-task.ts'

type Visit = (entry: StoredTask, task: Task) => void

/** Adds the children to `graph`, which has all other tasks. Calls `visit` with each that has an entry in `children`. */
export function addFanOuts(
  graph: Graph,
  parents: readonly { readonly task: Task; readonly entry: StoredTask }[],
  children: ReadonlyMap<string, StoredTask>,
  visit: Visit,
): void {
  for (const { task, entry } of parents) {
    const elements = elementsOf(task, entry)
    if (elements === undefined) continue
    const fanOut: FanOut<Task> = new FanOut(task, task.isTerminal ? undefined : itemsOf(task, entry), elements)
    task.fanOut = fanOut
    const tasks = runSync(newChildren(fanOut))
    graph.addChildren(fanOut, tasks)
    const settled = settledAmong(tasks, children)
    for (const child of tasks) {
      addChild(child, children.get(child.id), settled.get(child.id), visit)
      if (isLive(child)) graph.live++
      else fanOut.ended(child)
    }
  }
}

/**
 * The children that are deleted only because their parents are: the end of the service came before their own deletion was
 * written, so nobody was told of it.
 */
export function deletedWithParents(stored: readonly StoredTask[]): StoredTask[] {
  if (stored.every(({ parent }) => parent === undefined)) return []
  const parents = new Map(stored.filter(hasChildren).map((entry) => [entry.id, entry]))
  const isUntold = ({ parent, deleted }: StoredTask): boolean => {
    if (parent === undefined || deleted) return false
    const known = parents.get(parent)
    if (known === undefined) return true // a state file was written in between
    return known.deleted === true && known.child_count !== undefined // otherwise callers never saw children of it
  }
  return stored.filter(isUntold)
}

/** Outcomes of children whose records were removed, from the entries of those that depend on them. */
function settledAmong(
  tasks: readonly Task[],
  children: ReadonlyMap<string, StoredTask>,
): ReadonlyMap<string, SettledDependency> {
  const settled = new Map<string, SettledDependency>()
  for (const { id } of tasks)
    for (const each of children.get(id)?.settled_dependencies ?? []) settled.set(each.id, each)
  return settled
}

function addChild(
  child: Task,
  entry: StoredTask | undefined,
  settled: SettledDependency | undefined,
  visit: Visit,
): void {
  const { parent } = child.childOf!
  const { hasPlaceholders } = child.rare
  if (settled !== undefined && settled.outcome !== 'deleted' && entry?.seq === undefined) {
    child.status = settled.outcome
    child.setRare('skip_standing', settled.skip_standing)
    child.removal = 'deleted'
    return
  }
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
function elementsOf(task: Task, { child_count, fan_out }: StoredTask): number | undefined {
  const width = task.options.tasks?.length ?? 1
  if (child_count !== undefined) return Math.floor(child_count / width)
  return task.isTerminal || task.isDeleted ? undefined : fan_out?.count
}

/** The elements for which children may still run. */
function itemsOf(task: Task, { fan_out }: StoredTask): readonly unknown[] {
  if (fan_out?.items !== undefined) return fan_out.items
  if (task.options.for_each === undefined) return []
  const source = listSource(task.options.for_each)
  if (typeof source === 'string' || source.kind === 'reference') return []
  const list = source.kind === 'list' ? source.list : task.graph.options.params?.[source.name]
  return Array.isArray(list) ? list : []
}

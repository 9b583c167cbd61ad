/** Explains why a graph failed: the first failed task, the tasks skipped because of it, commands for more. Pure. */
import { inRanges, isYieldDue, type Steps } from '../../shared/process/steps.ts'
import { isObject } from '../../shared/text/json.ts'
import type { Edges } from '../rules/edges.ts'
import { attemptOutput } from './attempt-record.ts'
import type { Task } from './graph.ts'

/**
 * The task that failed first, without `continue_on_error`; undefined if none did. Of several in the same millisecond,
 * the one that changed first.
 */
export function* firstFailure(tasks: readonly Task[]): Steps<Task | undefined> {
  let first: Task | undefined
  yield* inRanges(tasks.length, (from, to) => {
    for (let i = from; i < to; i++) {
      const task = tasks[i]!
      if (task.status !== 'failed' || task.isDeleted) continue
      if (task.continuesOnError || task.childOf?.parent.continuesOnError) continue
      if (first === undefined || isBefore(task, first)) first = task
    }
  })
  return first
}

const isBefore = (a: Task, b: Task): boolean => {
  const [endOfA, endOfB] = [a.finishedAt ?? 0, b.finishedAt ?? 0]
  return endOfA < endOfB || (endOfA === endOfB && a.seq < b.seq)
}

/**
 * Number of tasks downstream that were skipped because of `lost`: of a member of a group, those of the same element, and
 * what depends on the group. A skip that the rules of the task allow does not count.
 */
export function* skippedBy(lost: Task, edges: DependentEdges, tasks: readonly Task[]): Steps<number> {
  const isFound = new Uint8Array(tasks.length)
  const open = lost.childOf === undefined ? [lost] : [lost, lost.childOf.parent]
  let count = 0
  let steps = 0
  for (let task = open.pop(); task !== undefined; task = open.pop()) {
    for (const dependent of dependentsOf(task, edges, tasks)) {
      const { position, status, rare, isDeleted } = dependent
      if (isFound[position] === 0 && status === 'skipped' && rare.skip_standing !== 'neutral') {
        isFound[position] = 1
        if (!isDeleted) count++
        open.push(dependent)
      }
      if (isYieldDue(steps++)) yield
    }
  }
  return count
}

type DependentEdges = Pick<Edges, 'dependentsStart' | 'dependents'>

function* dependentsOf(
  task: Task,
  { dependentsStart, dependents }: DependentEdges,
  tasks: readonly Task[],
): Generator<Task, void> {
  const { childOf, position } = task
  if (childOf !== undefined) {
    for (let i = 0; i < childOf.dependentCount(task); i++) yield childOf.dependent(task, i)
    return
  }
  for (let d = dependentsStart[position]!; d < dependentsStart[position + 1]!; d++) yield tasks[dependents[d]!]!
}

/** The last lines of the last attempt. `result` is the result of the task; undefined if it has none, or it is lost. */
export const failureTail = ({ rare: { attempts } }: Task, result: unknown): string | undefined =>
  attempts?.at(-1)?.tail ?? attemptOutput(result).tail

/** Characters of a remedy. Those of our services have less. */
const MAX_REMEDY_CHARACTERS = 1_000

export function remedyOf({ rare: { failure } }: Task): { remedy?: string } {
  const { details } = failure ?? {}
  const remedy = isObject(details) ? details.remedy : undefined
  return typeof remedy === 'string' ? { remedy: remedy.slice(0, MAX_REMEDY_CHARACTERS) } : {}
}

/** Text that a shell does not interpret. */
const PLAIN_WORD = /^[\w.:@%+=,/-]+$/

/** Control characters, which a terminal would interpret or a command line cannot contain. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this is about
const CONTROL_CHARACTER = /[\u0000-\u001f\u007f-\u009f]/

/** Commands of the client that show more about a failed task. Ids come from callers, so they are quoted. */
export function commandsAfterFailure({ id, graph }: Task): string[] {
  const graphCommand = `taskmill graph ${graph.id}`
  if (CONTROL_CHARACTER.test(id)) return [graphCommand]
  const name = shellWord(`${graph.id}/${id}`)
  return [`taskmill logs ${name}`, `taskmill get ${name}`, graphCommand]
}

const shellWord = (text: string): string => (PLAIN_WORD.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)

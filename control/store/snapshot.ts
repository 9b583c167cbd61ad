/**
 * `<data-dir>/state.json`: one JSON object, task id to task record.
 *
 * Written aside, synced and renamed, in slices, so that nobody waits for it; read at start, in slices of its own text,
 * so that the order of the file is the order of the tasks. Besides the record of the wire an entry holds what only a
 * restart needs (`StoredExtras`). A file of the older form, which has none of these, loads too. A file that cannot be
 * read stops the start and stays as it is.
 */
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { TypeCompiler } from '@sinclair/typebox/compiler'
import { replaceFile } from '../../shared/atomic-file.ts'
import { TaskInput, type TaskRecord } from '../../shared/contract/control.ts'
import { TASK_STATUSES, type TaskStatus } from '../../shared/contract/task-status.ts'
import { messageOf, UsageError } from '../../shared/errors.ts'
import { JsonSyntaxError, parseMembers } from '../../shared/json-slices.ts'
import { atOnce, nextTurn, SLICE_MS } from '../../shared/slices.ts'
import { newTraceId } from '../../shared/trace.ts'
import { buildEdges, findCycle } from '../graph/order.ts'
import { taskRecord } from '../graph/record.ts'
import { Graph, Task } from '../graph/task.ts'
import type { ValidTask } from '../graph/validate.ts'
import type { TaskStore } from './tasks.ts'

/** What an entry holds besides the record. */
export interface StoredExtras {
  readonly trace_id: string
  readonly interrupted_attempts?: number
  /** Dependencies whose records are gone, and what became of them. */
  readonly settled_dependencies?: readonly { readonly id: string; readonly outcome: TaskStatus | 'deleted' }[]
}

type StoredTask = Omit<TaskRecord, 'depends_on'> & { readonly depends_on?: string[] } & Partial<StoredExtras>

export const statePath = (dataDir: string): string => join(dataDir, 'state.json')

/** Makes the data directory, or throws `UsageError`. Only its owner may look inside. */
export function makeDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new UsageError(
      `cannot make the data directory ${dataDir}: ${messageOf(error)} (choose another with --data-dir)`,
    )
  }
}

/** Bytes of entries written with one call. */
const WRITE_BYTES = 256 * 1024

/** Writes the visible tasks of `store` to the state file of `dataDir`. */
export async function writeSnapshot(store: TaskStore, dataDir: string): Promise<void> {
  await replaceFile(statePath(dataDir), async (file) => {
    let text = '{'
    let separator = '\n'
    let sliceEnd = performance.now() + SLICE_MS
    for (const task of store.visibleTasks()) {
      text += `${separator}${JSON.stringify(task.id)}:${JSON.stringify(storedTask(store, task))}`
      separator = ',\n'
      if (text.length >= WRITE_BYTES) {
        await file.writeFile(text)
        text = ''
      }
      if (performance.now() >= sliceEnd) {
        await nextTurn()
        sliceEnd = performance.now() + SLICE_MS
      }
    }
    await file.writeFile(`${text}\n}\n`)
  })
}

function storedTask(store: TaskStore, task: Task): StoredTask {
  const { graph, interruptedAttempts } = task
  const extras: { -readonly [K in keyof StoredExtras]: StoredExtras[K] } = { trace_id: graph.traceId }
  if (interruptedAttempts > 0) extras.interrupted_attempts = interruptedAttempts
  if (!task.isTerminal) {
    const settled: { id: string; outcome: TaskStatus | 'deleted' }[] = []
    for (const position of graph.dependenciesOf(task)) {
      const dependency = graph.tasks[position]!
      if (store.isVisible(dependency)) continue
      settled.push({ id: dependency.id, outcome: dependency.isTerminal ? dependency.status : 'deleted' })
    }
    if (settled.length > 0) extras.settled_dependencies = settled
  }
  return { ...taskRecord(task), ...extras } as StoredTask
}

/** The graphs of the state file in `dataDir`; none when there is no file. Throws `UsageError` when it is unreadable. */
export async function readSnapshot(dataDir: string): Promise<Graph[]> {
  const path = statePath(dataDir)
  if (!existsSync(path)) return []
  const refuse = (detail: string) =>
    new UsageError(`cannot read the state file ${path}: ${detail}; it is left as it is: repair it or move it away`)
  let entries: [string, unknown][]
  try {
    entries = atOnce(parseMembers(new Uint8Array(await Bun.file(path).arrayBuffer())))
  } catch (error) {
    throw refuse(error instanceof JsonSyntaxError ? `it is not valid JSON: ${error.message}` : messageOf(error))
  }
  // A name that stands twice counts by its last value, as in every reader of JSON.
  const byId = new Map<string, StoredTask>()
  for (const [id, entry] of entries) byId.set(id, checkedEntry(id, entry, refuse))
  const byGraph = new Map<string, StoredTask[]>()
  for (const entry of byId.values()) {
    const graphId = entry.graph_id ?? ''
    const siblings = byGraph.get(graphId)
    if (siblings === undefined) byGraph.set(graphId, [entry])
    else siblings.push(entry)
  }
  return [...byGraph.values()].map((siblings) => recoverGraph(siblings, refuse))
}

const storedShape = TypeCompiler.Compile(TaskInput)

function checkedEntry(id: string, entry: unknown, refuse: (detail: string) => Error): StoredTask {
  if (!storedShape.Check(entry)) throw refuse(`the entry of task ${id} is not a task`)
  const task = entry as Partial<StoredTask>
  if (!task.type) throw refuse(`task ${id} has no type`)
  if (!(TASK_STATUSES as readonly string[]).includes(task.status ?? '')) {
    throw refuse(`task ${id} has the unknown status ${JSON.stringify(task.status ?? null)}`)
  }
  return { ...(task as StoredTask), id }
}

/** Entries without a graph of their own are one graph, as ids were global in the older form. */
function recoverGraph(entries: readonly StoredTask[], refuse: (detail: string) => Error): Graph {
  const all = [...entries, ...settledDependencies(entries)]
  const positions = new Map(all.map((entry, position) => [entry.id, position]))
  const dependents: number[] = []
  const dependencies: number[] = []
  all.forEach((entry, position) => {
    for (const id of entry.depends_on ?? []) {
      dependents.push(position)
      dependencies.push(positions.get(id)!)
    }
  })
  const edges = atOnce(buildEdges(all.length, Uint32Array.from(dependents), Uint32Array.from(dependencies)))
  const cycle = atOnce(findCycle(edges))
  if (cycle !== null) throw refuse(`the dependencies of task ${all[cycle[0]!]!.id} form a cycle`)

  const { graph_id, trace_id, created_at } = entries[0]!
  const graph = new Graph(
    graph_id ?? crypto.randomUUID(),
    trace_id ?? newTraceId(),
    timeOf(created_at) ?? Date.now(),
    edges,
  )
  all.forEach((entry, position) => {
    const task = recoverTask(graph, position, entry)
    graph.tasks.push(task)
    if (position >= entries.length) task.isDeleted = true
    else if (!task.isTerminal) graph.live++
  })
  for (let e = 0; e < dependents.length; e++) {
    if (graph.tasks[dependencies[e]!]!.status === 'success') graph.missing[dependents[e]!]!--
  }
  return graph
}

/** Stand-ins for dependencies whose records are gone. What became of one that nobody noted is unknown: deleted. */
function settledDependencies(entries: readonly StoredTask[]): StoredTask[] {
  const present = new Set(entries.map((entry) => entry.id))
  const gone = new Map<string, StoredTask>()
  for (const { depends_on, settled_dependencies, type } of entries) {
    for (const id of depends_on ?? []) {
      if (present.has(id) || gone.has(id)) continue
      const outcome = settled_dependencies?.find((settled) => settled.id === id)?.outcome ?? 'deleted'
      gone.set(id, { id, type, status: outcome === 'deleted' ? 'pending' : outcome } as StoredTask)
    }
  }
  return [...gone.values()]
}

/** What was running when the service ended is pending again; the attempt it cut short uses up no retry. */
function recoverTask(graph: Graph, position: number, entry: StoredTask): Task {
  const task = new Task(graph, position, entry as ValidTask)
  const { runtime } = entry
  task.createdAt = timeOf(entry.created_at) ?? task.createdAt
  task.updatedAt = timeOf(entry.updated_at) ?? task.createdAt
  task.startedAt = timeOf(entry.started_at)
  task.attemptStartedAt = timeOf(runtime?.started_at) ?? task.startedAt
  task.finishedAt = timeOf(entry.finished_at)
  task.attempt = entry.attempt ?? 0
  task.interruptedAttempts = entry.interrupted_attempts ?? 0
  task.result = entry.result ?? undefined
  task.errorText = entry.error ?? undefined
  task.failure = runtime?.error
  task.progress = entry.progress === undefined ? undefined : [...entry.progress]
  task.status = entry.status
  if (entry.status === 'running') {
    task.status = 'pending'
    if (entry.run_status === 'running') task.interruptedAttempts++
  } else if (entry.status === 'cancelling') {
    task.status = 'cancelled'
    task.failure = { code: 'cancelled', message: 'task cancelled' }
    task.errorText = task.failure.message
    task.finishedAt = Date.now()
  }
  return task
}

const timeOf = (text: string | undefined): number | undefined => {
  const ms = Date.parse(text ?? '')
  return Number.isNaN(ms) ? undefined : ms
}

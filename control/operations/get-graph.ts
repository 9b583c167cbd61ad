/** Shows one graph: its tasks in order, their dependencies, the critical path, and the root cause of a failure. */
import { type GraphDetails, MAX_GRAPH_TASKS, type RootCause } from '../../shared/contract/graphs.ts'
import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import type { KeptResults } from '../log/keeper.ts'
import { ResultFile } from '../rules/result-file.ts'
import { examineGraph, type GraphFindings } from '../task/graph-findings.ts'
import { summaryOf } from '../task/graph-summary.ts'
import { graphTask, shortAnnotations, shownDependencies } from '../task/graph-task.ts'
import { commandsAfterFailure, failureTail, remedyOf } from '../task/root-cause.ts'
import { knownGraph } from './named-tasks.ts'
import type { OperationParts } from './parts.ts'
import { graphEnded } from './wait.ts'
import { type WaitingNow, waitingNow } from './waiting.ts'

/** Maximum characters of a result that is parsed for its last lines. That takes 5 ms of the event loop. */
const MAX_PARSED_CHARACTERS = 4 * 1024 * 1024

/** A graph as of now. Its tasks are formatted later. */
export interface ShownGraph {
  readonly findings: GraphFindings
  /** The answer without tasks and edges. */
  readonly head: Omit<GraphDetails, 'tasks' | 'edges'>
}

/**
 * Returns the answer as JSON, and the number of the last event that it includes. First waits until the graph has ended
 * or the signal of `patience` fires; without a signal it does not wait. `patience` is called once the graph is found.
 * Throws 404, also if the graph is removed meanwhile.
 */
export async function getGraphJson(
  parts: OperationParts & OperationParts,
  id: string,
  patience: () => AbortSignal | undefined,
): Promise<{ readonly json: string; readonly position: number }> {
  const graph = knownGraph(parts.store, id)
  const until = patience()
  if (until !== undefined) await graphEnded(parts.store, graph, AbortSignal.any([until, parts.stopping]))
  const { position } = parts.eventStreams
  const { findings, head } = await getGraph(parts, id)
  const waiting = await waitingNow(parts, findings.shown)
  const json = await runCooperatively(graphJson(head, findings, waiting))
  await parts.keeper.kept('show')
  return { json, position }
}

/** Throws 404. */
export async function getGraph(parts: OperationParts, id: string): Promise<ShownGraph> {
  const graph = knownGraph(parts.store, id)
  const findings = await runCooperatively(examineGraph(graph, Date.now()))
  const cause = await rootCause(findings, parts.keeper.results)
  const kept = parts.keeper.kept('show')
  const { tasks, totals, criticalPath, isTruncated } = findings
  const path = criticalPath.positions.slice(0, MAX_GRAPH_TASKS)
  const head = {
    ...summaryOf(graph, totals),
    critical_path: { task_ids: path.map((at) => tasks[at]!.id), duration_ms: criticalPath.durationMs },
    ...(cause !== undefined && { root_cause: cause }),
    ...((isTruncated || path.length < criticalPath.positions.length) && { truncated: true }),
  }
  await kept
  return { findings, head }
}

async function rootCause({ failure }: GraphFindings, reader: KeptResults): Promise<RootCause | undefined> {
  if (failure === undefined) return undefined
  const { task, skipped } = failure
  const tail = failureTail(
    task,
    task.result instanceof ResultFile ? await parsedResult(task.result, reader) : task.result,
  )
  return {
    task_id: task.id,
    error: task.rare.error ?? '',
    ...(task.rare.failure !== undefined && { code: task.rare.failure.code }),
    ...(tail !== undefined && { tail }),
    ...remedyOf(task),
    skipped,
    try_next: commandsAfterFailure(task),
  }
}

/** Undefined if the result is lost or too large. */
async function parsedResult(file: ResultFile, reader: KeptResults): Promise<unknown> {
  const result = await reader.read(file)
  return 'lost' in result || result.json.length > MAX_PARSED_CHARACTERS ? undefined : JSON.parse(result.json)
}

/** Formats the answer. In steps, because a large graph takes longer than a turn of the event loop may. */
function* graphJson(head: ShownGraph['head'], { shown }: GraphFindings, waiting: WaitingNow): Steps<string> {
  const now = Date.now()
  const shownIds = new Set<string>()
  let [tasks, edges] = ['', '']
  let steps = 0
  for (const task of shown) {
    const id = JSON.stringify(task.id)
    for (const dependency of shownDependencies(task, (name) => shownIds.has(name))) {
      edges += `${edges === '' ? '' : ','}[${JSON.stringify(dependency)},${id}]`
      if (isYieldDue(steps++)) yield
    }
    shownIds.add(task.id)
    tasks += `${tasks === '' ? '' : ','}${JSON.stringify({ ...graphTask(task, now, waiting(task)), ...shortAnnotations(task) })}`
    if (isYieldDue(steps++)) yield
  }
  return `${JSON.stringify(head).slice(0, -1)},"tasks":[${tasks}],"edges":[${edges}]}`
}

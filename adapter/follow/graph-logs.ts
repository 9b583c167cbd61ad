/** The output of all tasks of a graph: what they have written, or, followed, what they write until the graph has ended. */
import { messageOf } from '../../shared/contract/errors.ts'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import { visibleLine } from '../../shared/text/visible-text.ts'
import { type Answer, EXIT, Interrupted, PartialFailure } from '../envelope.ts'
import { logLines } from '../table/log.ts'
import type { Look } from '../table/look.ts'
import { Follower } from './follow.ts'
import { FollowedGraph } from './followed-graph.ts'
import { GraphOutput, MAX_READ_OUTPUTS, type OutputSink } from './graph-output.ts'
import { prefixedOutput } from './shown-output.ts'
import { standardError } from './standard-error.ts'
import { MAX_KEPT_BYTES, type TaskOutput } from './task-output.ts'

/** Bytes of each stream of a task in the answer. All streams together have `MAX_KEPT_BYTES`. */
export const MAX_KEPT_TASK_BYTES = 256 * 1024

export interface GraphLogsRequest {
  readonly client: ServiceClient
  /** The answer of GET /graphs/{id}. */
  readonly details: GraphDetails
  readonly isFollowed: boolean
  readonly tail: number | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  readonly interruption: AbortSignal
}

type KeptText = ReturnType<TaskOutput['text']>

export async function graphLogs(request: GraphLogsRequest): Promise<Answer> {
  const { client, details, isFollowed, tail, env, interruption: signal } = request
  const { graph_id: graphId } = details
  const screen = standardError(env)
  const outputScreen = { paint: screen.paint, drained: screen.drained, view: { above: screen.write } }
  const kept = new Map<string, KeptText>()
  let remainingBytes = MAX_KEPT_BYTES
  const keep = (taskId: string, text: KeptText) => {
    remainingBytes -= text.stdout.length + text.stderr.length
    if (text.stdout !== '' || text.stderr !== '' || text.truncated) kept.set(taskId, text)
  }
  const failed = new AbortController()
  const output = new GraphOutput({
    ...{ client, graphId, isFollowed, tail, slots: MAX_READ_OUTPUTS },
    signal: AbortSignal.any([signal, failed.signal]),
    begin: ({ id }) => ({
      sink: keeping(isFollowed ? prefixedOutput(outputScreen, id) : undefined, (text) => keep(id, text)),
      maxKeptBytes: Math.max(0, Math.min(remainingBytes, MAX_KEPT_TASK_BYTES)),
    }),
  })
  const graph = new FollowedGraph(graphId, new Map(), Date.now(), (task) => {
    if (task.phase !== 'waiting') output.add(task)
  })
  const data = () => {
    const { state, tasks } = graph.data()
    const shown = tasks.flatMap(({ id, status }) => (kept.has(id) ? { task_id: id, status, ...kept.get(id)! } : []))
    const isCut = !isFollowed && details.truncated === true
    return { graph_id: graphId, state, tasks: shown, ...(isCut && { truncated: true }) }
  }
  const onOutage = (notice: string) => screen.write(`taskmill: ${visibleLine(notice)}\n`)
  try {
    if (isFollowed) await new Follower(client, graph, signal, onOutage).follow()
    else graph.look(details)
    await output.whenRead()
    signal.throwIfAborted()
  } catch (error) {
    failed.abort()
    await output.whenRead()
    const exitCode = error instanceof Interrupted ? error.exitCode : EXIT.error
    throw new PartialFailure(messageOf(error), error instanceof CallFailed ? error : {}, data(), exitCode)
  }
  return { data: data(), exitCode: EXIT.success, table: async (look) => (isFollowed ? [] : table(data().tasks, look)) }
}

/** A sink that also hands over the text, once all of it was read. */
const keeping = (shown: OutputSink | undefined, keep: (text: KeptText) => void): OutputSink => ({
  show: async (chunk, stream) => shown?.show(chunk, stream),
  async end(output, fault) {
    const text = output.text()
    keep({ ...text, truncated: text.truncated || fault !== undefined })
    await shown?.end(output, fault)
  },
})

const table = (tasks: readonly ({ readonly task_id: string } & KeptText)[], look: Look): string[] =>
  tasks.flatMap((task) =>
    logLines(task, look).map((line) => `${look.paint('cyan', `${visibleLine(task.task_id)} |`)} ${line}`),
  )

/** Shows a graph on standard error while it runs, and returns the answer of `run` and `watch`. */
import { messageOf } from '../../shared/contract/errors.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import { PlainView } from '../../shared/text/live-view/plain-view.ts'
import { hasEnded, type TaskProgress } from '../../shared/text/live-view/progress.ts'
import type { LiveView } from '../../shared/text/live-view/screen.ts'
import { TerminalView } from '../../shared/text/live-view/terminal-view.ts'
import { graphInBrief } from '../brief.ts'
import { type Answer, EXIT, Interrupted, PartialFailure } from '../envelope.ts'
import { ownCommand } from '../own-command.ts'
import { commandLine } from '../shell-words.ts'
import { generalTable } from '../table/general.ts'
import { rootCauseLines } from '../table/graph.ts'
import type { Expectation } from './expectation.ts'
import { type FailureReport, failureReport } from './failure-report.ts'
import { Follower, GraphRemoved } from './follow.ts'
import { FollowedGraph } from './followed-graph.ts'
import { GraphOutput, MAX_READ_OUTPUTS } from './graph-output.ts'
import { OutputGroups, type OutputScreen, prefixedOutput } from './shown-output.ts'
import { type StandardError, standardError } from './standard-error.ts'

/** Milliseconds between two frames: a step of the spinner. */
const FRAME_MS = 80

/** What is shown while the graph runs. */
export interface ShowSettings {
  /** Whose output is shown. */
  readonly logs: 'all' | 'errors' | 'none'
  /** No progress is shown. */
  readonly quiet: boolean
  /** 0: no limit. */
  readonly timeout: number
}

export interface ShowRequest extends ShowSettings {
  readonly client: ServiceClient
  readonly graphId: string
  readonly title: string
  /** The annotations for people in the file of the graph. */
  readonly expectations: ReadonlyMap<string, Expectation>
  readonly interruption: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

/** `--timeout` has passed. */
class TimeIsOver extends Error {}

export async function showGraph(request: ShowRequest): Promise<Answer> {
  const { client, graphId, expectations, interruption } = request
  const timeUp = new AbortController()
  const timer = request.timeout > 0 ? setTimeout(() => timeUp.abort(new TimeIsOver()), request.timeout) : undefined
  const signal = AbortSignal.any([interruption, timeUp.signal])
  const screen = standardError(request.env)
  const view = newView(screen, request)
  const failed = new AbortController()
  const outputScreen = { paint: screen.paint, drained: screen.drained, view }
  const output = shownOutput(request, outputScreen, screen.isTerminal, AbortSignal.any([signal, failed.signal]))
  const graph = new FollowedGraph(graphId, expectations, Date.now(), output.onProgress)
  const follower = new Follower(client, graph, signal)
  const notice = () => follower.notice || approvalNotice(request, graph)
  const picture = showing(view, graph, { notice, isHeld: () => output.isGroupOpen() || screen.isBusy() })
  let isThere = true
  let report: FailureReport | undefined
  try {
    await follower.follow()
    await output.whenRead()
    interruption.throwIfAborted()
    if (!graph.wentAsMeant) report = await failureReport(client, graphId, signal)
    return answerOf(graph, report, request)
  } catch (error) {
    failed.abort()
    if (error instanceof TimeIsOver) {
      const data = graph.data()
      return { data, exitCode: EXIT.waitTimedOut, brief: () => graphInBrief(data, request) }
    }
    const answer = error instanceof CallFailed ? error : undefined
    const isUnknown = answer?.statusCode === 404
    isThere = !isUnknown && !(error instanceof GraphRemoved)
    const exitCode = error instanceof Interrupted ? error.exitCode : EXIT.error
    const data = graph.data()
    if (isUnknown && data.tasks.length === 0) throw error
    throw new PartialFailure(messageOf(error), answer ?? {}, data, exitCode)
  } finally {
    clearTimeout(timer)
    await output.whenRead()
    await screen.drained()
    picture.close()
    if (report !== undefined) screen.write(`${rootCauseLines(report.shown, screen.look()).join('\n')}\n`)
    if (!graph.hasEnded && isThere) screen.write(`The graph goes on.\n${commandsFor(request)}\n`)
    await screen.drained()
  }
}

function answerOf(graph: FollowedGraph, report: FailureReport | undefined, request: ShowRequest): Answer {
  const data = graph.data()
  const whole = { ...data, ...(report !== undefined && { root_cause: report.cause }) }
  return {
    data: whole,
    brief: () => graphInBrief(whole, request),
    exitCode: graph.wentAsMeant ? EXIT.success : EXIT.error,
    table: async (look) => generalTable(data, look), // the cause is on standard error
  }
}

/** Shell commands that follow and cancel the graph. Ids of graphs are harmless, unless the service is not ours. */
function commandsFor(request: ShowRequest): string {
  return `To follow it: ${commandFor(request, 'watch')}\nTo stop it:   ${commandFor(request, 'cancel')}`
}

/** The shell command of a subcommand for the graph, or for a task of it. */
function commandFor(request: ShowRequest, verb: string, taskId?: string): string {
  const { graphId } = request
  const id = /^[\w.-]+$/.test(graphId) ? graphId : 'GRAPH_ID'
  const subject = taskId === undefined ? id : `${id}/${taskId}`
  return ownCommand(commandLine(verb, subject), request)
}

/** The commands to answer the first task that waits for an approval; empty if none waits. */
function approvalNotice(request: ShowRequest, graph: FollowedGraph): string {
  const [first, ...others] = graph.asking
  if (first === undefined) return ''
  const more = others.length === 0 ? '' : `; ${others.length} more wait for approval`
  return `To approve: ${commandFor(request, 'approve', first)} (or reject)${more}`
}

/** Draws frames until `close`, which draws the last one. While `isHeld`, none is drawn. */
function showing(
  view: LiveView,
  graph: FollowedGraph,
  { notice: noticeOf, isHeld }: { readonly notice: () => string; readonly isHeld: () => boolean },
): { close(): void } {
  const isTerminal = view instanceof TerminalView
  let last: object | undefined
  let lastNotice = ''
  const draw = () => {
    if (isHeld()) return
    const notice = noticeOf()
    const progress = graph.progress(Date.now(), notice)
    // Without a terminal only changes are worth a line.
    if (!isTerminal && progress.tasks === last && notice === lastNotice) return
    last = progress.tasks
    lastNotice = notice
    view.show(progress)
  }
  const timer = setInterval(draw, FRAME_MS)
  return {
    close() {
      clearInterval(timer)
      draw()
      view.close()
    },
  }
}

function newView(screen: StandardError, { title, quiet }: ShowRequest): LiveView {
  if (quiet) return { show: () => {}, above: screen.write, close: () => {} }
  return screen.isTerminal ? new TerminalView(screen, title, screen.paint) : new PlainView(screen, title)
}

/** Whether a CI server runs the client. Variables of other meanings may have these names, too. */
const isInCi = ({ CI = '', GITHUB_ACTIONS = '' }: ShowRequest['env']): boolean =>
  [CI, GITHUB_ACTIONS].some((value) => !['', 'false', '0'].includes(value))

/** The output of the tasks whose progress it hears of. */
function shownOutput(
  { client, graphId, logs, env }: ShowRequest,
  screen: OutputScreen,
  isTerminal: boolean,
  signal: AbortSignal,
) {
  const groups = isInCi(env) && !isTerminal ? new OutputGroups(screen) : undefined
  const output = new GraphOutput({
    ...{ client, graphId, signal, isFollowed: true },
    slots: groups === undefined ? MAX_READ_OUTPUTS : 1,
    begin: (task) => ({ sink: groups?.begin(task) ?? prefixedOutput(screen, task.id), maxKeptBytes: 0 }),
  })
  const isWanted = ({ phase }: TaskProgress) =>
    logs === 'errors' ? phase === 'failed' : groups === undefined ? phase !== 'waiting' : hasEnded(phase)
  return {
    onProgress(task: TaskProgress): void {
      if (logs !== 'none' && isWanted(task)) output.add(task)
    },
    whenRead: () => output.whenRead(),
    isGroupOpen: () => groups?.isOpen ?? false,
  }
}

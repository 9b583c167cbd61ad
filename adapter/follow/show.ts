/** Shows a graph on standard error while it runs, and returns the answer of `run` and `watch`. */
import { messageOf } from '../../shared/contract/errors.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import { colours, noColours } from '../../shared/text/live-view/palette.ts'
import { PlainView } from '../../shared/text/live-view/plain-view.ts'
import type { LiveView } from '../../shared/text/live-view/screen.ts'
import { TerminalView } from '../../shared/text/live-view/terminal-view.ts'
import { type Answer, EXIT, Interrupted, PartialFailure } from '../envelope.ts'
import { ownCommand } from '../own-command.ts'
import { commandLine } from '../shell-words.ts'
import type { Expectation } from './expectation.ts'
import { Follower, GraphRemoved } from './follow.ts'
import { FollowedGraph } from './followed-graph.ts'

/** Milliseconds between two frames: a step of the spinner. */
const FRAME_MS = 80

export interface ShowRequest {
  readonly client: ServiceClient
  readonly graphId: string
  readonly title: string
  /** The annotations for people in the file of the graph. */
  readonly expectations: ReadonlyMap<string, Expectation>
  /** 0: no limit. */
  readonly timeoutMs: number
  readonly interruption: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

/** `--timeout` has passed. */
class TimeIsOver extends Error {}

export async function showGraph(request: ShowRequest): Promise<Answer> {
  const { client, graphId, expectations, timeoutMs, interruption } = request
  const graph = new FollowedGraph(graphId, expectations, Date.now())
  const timeUp = new AbortController()
  const timer = timeoutMs > 0 ? setTimeout(() => timeUp.abort(new TimeIsOver()), timeoutMs) : undefined
  const follower = new Follower(client, graph, AbortSignal.any([interruption, timeUp.signal]))
  const picture = showing(newView(request), graph, () => follower.notice || approvalNotice(request, graph))
  let isThere = true
  try {
    await follower.follow()
    return { data: graph.data(), exitCode: graph.wentAsMeant ? EXIT.success : EXIT.error }
  } catch (error) {
    if (error instanceof TimeIsOver) return { data: graph.data(), exitCode: EXIT.waitTimedOut }
    const answer = error instanceof CallFailed ? error : undefined
    const isUnknown = answer?.statusCode === 404
    isThere = !isUnknown && !(error instanceof GraphRemoved)
    const exitCode = error instanceof Interrupted ? error.exitCode : EXIT.error
    const data = graph.data()
    if (isUnknown && data.tasks.length === 0) throw error
    throw new PartialFailure(messageOf(error), answer ?? {}, data, exitCode)
  } finally {
    clearTimeout(timer)
    picture.close()
    if (!graph.hasEnded && isThere) process.stderr.write(`The graph goes on.\n${commandsFor(request)}\n`)
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

/** Draws frames until `close`, which draws the last one. */
function showing(view: LiveView, graph: FollowedGraph, noticeOf: () => string): { close(): void } {
  const isTerminal = view instanceof TerminalView
  let last: object | undefined
  let lastNotice = ''
  const draw = () => {
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

function newView({ title, env }: ShowRequest): LiveView {
  const screen = process.stderr
  screen.on('error', () => {}) // the reader of standard error is gone; the command goes on
  if (screen.isTTY !== true || env.TERM === 'dumb') return new PlainView(screen, title)
  return new TerminalView(screen, title, env.NO_COLOR ? noColours : colours)
}

/**
 * `bun run demo`: a real graph, run to its end before your eyes.
 *
 * It starts a control service and a file server on free ports of loopback, submits examples/survey.json with the client
 * and shows the tasks while they run, then what came of them and the report that they wrote. Every task must end as the
 * graph says it will. At the end, however it comes, everything is stopped and every temporary file is gone.
 *
 * Exit codes: 0 as expected, 1 not so, 128 + n after signal n.
 */
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { bypassProxyForLoopback } from '../../shared/proxy.ts'
import { serveDocuments } from './file-server.ts'
import { formatSeconds } from './frame.ts'
import { type ExampleGraph, fillIn } from './graph.ts'
import { type LiveView, PlainView, sizeOf, TerminalView } from './live-view.ts'
import { colours, noColours } from './palette.ts'
import { type GraphProgress, graphProgress, type Phase } from './progress.ts'
import { renderResults } from './results.ts'
import { Client, type Control, startControl } from './services.ts'
import { makeWorkspace } from './workspace.ts'

const EXAMPLES = dirname(import.meta.dir)
const SOURCES = dirname(EXAMPLES)

/** Milliseconds between two looks at the tasks: often enough to see the short ones, seldom enough to cost nothing. */
const LOOK_MS = 50

/** The task whose result is the report. */
const REPORT_TASK = 'read-report'

class Interrupted extends Error {
  constructor(readonly exitCode: number) {
    super('interrupted')
  }
}

const screen = process.stdout
const isTerminal = screen.isTTY === true && process.env.TERM !== 'dumb'
const paint = isTerminal && !process.env.NO_COLOR ? colours : noColours
/** A file or a pipe takes lines of any length. */
const columns = () => (isTerminal ? sizeOf(screen).columns : 400)
const say = (text: string) => void screen.write(`${text}\n`)

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interruption.abort(new Interrupted(128 + constants.signals[signal])))
}
// Whoever read our output is gone: there is nobody to show anything to.
screen.on('error', () => interruption.abort(new Interrupted(128 + constants.signals.SIGPIPE)))

bypassProxyForLoopback(process.env)
try {
  const outcome = await demo(interruption.signal)
  say(` ${paint('green', '✓')} ${outcome}`)
  say(paint('dim', '   Everything is stopped. More to try is in examples/README.md.'))
} catch (error) {
  process.exitCode = report(interruption.signal.aborted ? interruption.signal.reason : error)
}

/** Says what went wrong, and gives the exit code. */
function report(error: unknown): number {
  if (error instanceof Interrupted) {
    say('\nInterrupted. Everything is stopped.')
    return error.exitCode
  }
  console.error(`\n${paint('red', 'The demo failed:')} ${error instanceof Error ? error.message : error}`)
  return 1
}

/** Runs it all and stops it all; gives the outcome in words. */
async function demo(signal: AbortSignal): Promise<string> {
  // One after the other: each says on its own what is missing.
  const executables = { control: await builtProgram('taskmill-control'), client: await builtProgram('taskmill') }
  using workspace = makeWorkspace()
  await using files = serveDocuments({ bytesPerSecond: 2_000, busyFor: 'species.txt', busyMs: 300 })
  await using control = await startControl(executables.control, workspace, signal)
  try {
    const json = await Bun.file(join(EXAMPLES, 'survey.json')).text()
    const filled = fillIn(json, { FILES: files.url, WORK: workspace.work, SOURCES })
    await Bun.write(workspace.graph, filled)
    const graph = JSON.parse(filled) as ExampleGraph
    const { records, progress } = await run(graph, workspace.graph, control, executables.client, signal)
    showResults(graph, records, progress)
    await control.stop()
    return closingWords(progress)
  } catch (error) {
    if (!signal.aborted) console.error(`\nThe last lines of the control service:\n${control.logTail}`)
    throw error
  }
}

/** Submits the graph and shows it until all of its tasks have ended. */
async function run(graph: ExampleGraph, file: string, control: Control, executable: string, signal: AbortSignal) {
  const client = new Client(executable, control.url)
  const title = ` taskmill  runs the ${graph.tasks.length} tasks of examples/survey.json on ${control.url}`
  const { task_ids } = await client.submit(file, signal)
  let isOver = false
  const waiting = client.wait(task_ids, signal).finally(() => {
    isOver = true
  })
  const view: LiveView = isTerminal ? new TerminalView(screen, title, paint) : new PlainView(screen, title)
  try {
    for (;;) {
      const isLast = isOver // read before looking: what is shown last is how it ended
      const records = await control.tasks(signal)
      const progress = graphProgress(graph.tasks, records, Date.now())
      view.show(progress)
      if (isLast) {
        await waiting
        return { records, progress }
      }
      await Promise.race([waiting, Bun.sleep(LOOK_MS)])
    }
  } finally {
    view.close()
    await waiting.catch(() => {}) // it fails with the rest, or has been heard
  }
}

/** Shows the table and the report. Throws when something ended otherwise than the graph says. */
function showResults(graph: ExampleGraph, records: readonly TaskRecord[], progress: GraphProgress): void {
  say('')
  for (const line of renderResults(graph.tasks, progress, records, columns(), paint)) say(line)
  const surprises = progress.tasks.filter(({ isSurprise }) => isSurprise).map(({ id }) => id)
  if (surprises.length > 0) throw new Error(`not ended as examples/survey.json expects: ${surprises.join(', ')}`)
  const result = records.find(({ id }) => id === REPORT_TASK)?.result as { content?: unknown } | undefined
  if (typeof result?.content !== 'string' || result.content.trim() === '') throw new Error('the report is empty')
  say(`\n${result.content.trimEnd()}\n`)
}

function closingWords({ tasks, nowMs }: GraphProgress): string {
  const count = (phase: Phase) => tasks.filter((task) => task.phase === phase).length
  const again = tasks.filter(({ phase, attempt }) => phase === 'success' && attempt > 1).length
  return `${tasks.length} tasks in ${formatSeconds(nowMs)}, each as expected.
   ${count('success')} succeeded, ${again} of them at the second attempt.
   ${count('failed')} failed on purpose, and ${count('skipped')} that needed it were skipped.`
}

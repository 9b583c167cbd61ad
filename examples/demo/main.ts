/**
 * `bun run demo`: runs two real graphs while you watch.
 *
 * It starts a control service, a runtime service, a file server and an artifact store on free loopback ports. It
 * submits examples/survey.json and then examples/build.json with the client and shows the tasks while they run. Then
 * it shows the results: the report of the first graph, the guide that the second one built, the isolation of its
 * steps, and the record of the step that is meant to fail. Every task must end as its graph says. At the end, also
 * after an interrupt, it stops all processes and removes all temporary files.
 *
 * Exit codes: 0 if every task ended as expected, 1 if not, 128 + n after signal n.
 */
import { constants } from 'node:os'
import { dirname, join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { bypassProxyForLoopback } from '../../shared/http/proxy.ts'
import { formatSeconds } from '../../shared/text/live-view/frame.ts'
import { colours, noColours } from '../../shared/text/live-view/palette.ts'
import { PlainView } from '../../shared/text/live-view/plain-view.ts'
import type { Phase } from '../../shared/text/live-view/progress.ts'
import { sizeOf } from '../../shared/text/live-view/screen.ts'
import { TerminalView } from '../../shared/text/live-view/terminal-view.ts'
import { type Act, play, type Stage } from './act.ts'
import { serveArtifacts } from './artifact-store.ts'
import { Client } from './client.ts'
import { endLocalTasks, startControl } from './control.ts'
import { standInForCurl, withPreamble } from './curl.ts'
import { failureWords } from './failure.ts'
import { serveDocuments } from './file-server.ts'
import { fillIn } from './graph.ts'
import { isolationWords } from './isolation.ts'
import { renderResults } from './results.ts'
import { Runtime } from './runtime.ts'
import { runtimeResultOf } from './runtime-result.ts'
import { makeWorkspace } from './workspace.ts'

const EXAMPLES = dirname(import.meta.dir)
const SOURCES = dirname(EXAMPLES)

/** Sentences are easier to read in lines that are not longer. */
const MAX_TEXT_COLUMNS = 110

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
  const controlProgram = await builtProgram('taskmill-control')
  const runtimeProgram = await builtProgram('taskmill-runtime')
  const clientProgram = await builtProgram('taskmill')
  const standIn = standInForCurl(process.env.PATH)
  using workspace = makeWorkspace()
  await using documents = serveDocuments({ bytesPerSecond: 2_000, busyFor: 'species.txt', busyMs: 300 })
  await using store = await serveArtifacts({ port: 0, bytesPerSecond: 60_000 })
  await using runtime = await Runtime.start(runtimeProgram, workspace, signal)
  // Disposed after control: only then do no more of its tasks start.
  await using leftovers = new AsyncDisposableStack()
  leftovers.defer(() => endLocalTasks(workspace))
  await using control = await startControl(controlProgram, workspace, runtime.service.url, signal)
  try {
    const stage: Stage = {
      control,
      runtime: runtime.service,
      client: new Client(clientProgram, control.url),
      limitsMemory: await runtime.limitsMemory(signal),
      graphPath: workspace.graph,
      newView: (title) => (isTerminal ? new TerminalView(screen, title, paint) : new PlainView(screen, title)),
      signal,
    }
    const values = { FILES: documents.url, WORK: workspace.work, SOURCES, STORE: store.url }
    const survey = await play('survey.json', fillIn(await example('survey.json'), values), stage)
    showResults('survey.json', survey)
    say(`\n${textOf(survey, 'read-report', 'content')}\n`)

    const build = fillIn(await example('build.json'), values)
    const built = await play('build.json', standIn === undefined ? build : withPreamble(build, standIn), stage)
    showResults('build.json', built)
    say(`\n${textOf(built, 'describe', 'stdout')}\n`)
    showHowItRan(built)

    await control.stop()
    await runtime.stop()
    return closingWords([survey, built])
  } catch (error) {
    if (!signal.aborted) {
      for (const { name, logTail } of [control, runtime.service])
        console.error(`\nThe last lines of the ${name}:\n${logTail}`)
    }
    throw error
  }
}

function example(name: string): Promise<string> {
  return Bun.file(join(EXAMPLES, name)).text()
}

/** Shows the table. Throws when something ended otherwise than the graph says. */
function showResults(name: string, { graph, records, progress }: Act): void {
  say('')
  for (const line of renderResults(graph.tasks, progress, records, columns(), paint)) say(line)
  const surprises = progress.tasks.filter(({ isSurprise }) => isSurprise).map(({ id }) => id)
  if (surprises.length > 0) throw new Error(`not ended as examples/${name} expects: ${surprises.join(', ')}`)
}

/** The text that `field` of the result of the task `id` holds. */
function textOf({ records }: Act, id: string, field: string): string {
  const result = records.find((record) => record.id === id)?.result as Record<string, unknown> | undefined
  const text = result?.[field]
  if (typeof text !== 'string' || text.trim() === '') throw new Error(`the ${field} of ${id} is empty`)
  return text.trimEnd()
}

/** How far the steps were fenced in, and what those that failed tell about it. */
function showHowItRan({ records }: Act): void {
  const width = Math.min(columns(), MAX_TEXT_COLUMNS)
  const failed = records.filter((record) => record.status === 'failed' && runtimeResultOf(record) !== undefined)
  for (const [first, ...rest] of [isolationWords(records, width), ...failed.map((task) => failureWords(task, width))]) {
    say(paint('bold', first ?? ''))
    for (const line of rest) say(line)
    say('')
  }
}

function closingWords(acts: readonly Act[]): string {
  const tasks = acts.flatMap(({ progress }) => progress.tasks)
  const ms = acts.reduce((sum, { progress }) => sum + progress.nowMs, 0)
  const count = (phase: Phase) => tasks.filter((task) => task.phase === phase).length
  const again = tasks.filter(({ phase, attempt }) => phase === 'success' && attempt > 1).length
  return `${tasks.length} tasks in ${formatSeconds(ms)}, each as expected.
   ${count('success')} succeeded, ${again} of them at the second attempt.
   ${count('failed')} failed on purpose, and ${count('skipped')} that needed it were skipped.`
}

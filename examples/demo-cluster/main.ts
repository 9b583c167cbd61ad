/**
 * `make demo-cluster`: a cluster on this machine, of which two parts are killed while a graph runs.
 *
 * It starts a PostgreSQL with a synchronous standby, three replicas of control and two runtime services, all on free
 * loopback ports and in a temporary directory. A graph of 200 tasks is submitted. Meanwhile the replica that runs it is
 * killed, then the primary of the database, and its standby is promoted. Every task notes each of its starts in a file, so
 * that the end can tell what was lost and what ran twice. At the end, also after an interrupt, it stops all processes and
 * removes all files.
 *
 * Exit codes: 0 if nothing was lost, 1 if something was or the demo could not run, 128 + n after signal n.
 */
import { mkdirSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { postgresPrograms } from '../../scripts/postgres-programs.ts'
import { type Postgres, startPostgres } from '../../scripts/postgres-server.ts'
import { bypassProxyForLoopback } from '../../shared/http/proxy.ts'
import { formatSeconds } from '../../shared/text/live-view/frame.ts'
import { Runtime } from '../demo/runtime.ts'
import { makeWorkspace } from '../demo/workspace.ts'
import { type Outcome, outcomeOf, wideGraph } from './graph.ts'
import { Replicas } from './replicas.ts'

const TASKS = 200
const RUNTIMES = ['one', 'two'] as const

/** Tasks that have ended when the replica is killed, and when the primary is. */
const BEFORE_REPLICA = 40
const BEFORE_PRIMARY = 120

let startedAt = performance.now()
const say = (text: string) =>
  void process.stdout.write(`${formatSeconds(performance.now() - startedAt).padStart(6)}  ${text}\n`)

class Interrupted extends Error {
  constructor(readonly exitCode: number) {
    super('interrupted')
  }
}

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => interruption.abort(new Interrupted(128 + constants.signals[signal])))
}
process.stdout.on('error', () => interruption.abort(new Interrupted(128 + constants.signals.SIGPIPE)))

bypassProxyForLoopback(process.env)
try {
  const outcome = await demo(interruption.signal)
  for (const line of outcome.lines) say(line)
  say(outcome.isWell ? 'Nothing was lost. Everything is stopped.' : 'Something was lost. Everything is stopped.')
  process.exitCode = outcome.isWell ? 0 : 1
} catch (error) {
  const reason = interruption.signal.aborted ? interruption.signal.reason : error
  if (reason instanceof Interrupted) say('Interrupted. Everything is stopped.')
  else process.stderr.write(`The demo failed: ${reason instanceof Error ? reason.message : reason}\n`)
  process.exitCode = reason instanceof Interrupted ? reason.exitCode : 1
}

/** Starts all, breaks some of it, and tells what became of the graph. */
async function demo(signal: AbortSignal): Promise<Outcome> {
  if (postgresPrograms() === undefined) {
    throw new Error('there is no PostgreSQL on this machine (Debian: apt-get install postgresql)')
  }
  const controlProgram = await builtProgram('taskmill-control')
  const runtimeProgram = await builtProgram('taskmill-runtime')
  startedAt = performance.now() // builds do not count
  using workspace = makeWorkspace()
  await using primary = await startPostgres({ standby: true })
  const standby = primary.standby!
  say(`PostgreSQL: a primary on port ${primary.port}, and a synchronous standby on port ${standby.port}.`)
  await using runtimes = new AsyncDisposableStack()
  const urls: string[] = []
  for (const name of RUNTIMES) {
    const work = join(workspace.work, name)
    mkdirSync(work)
    const place = { ...workspace, work, runtimeData: `${workspace.runtimeData}-${name}` }
    const runtime = runtimes.use(await Runtime.start(runtimeProgram, place, signal))
    urls.push(`${name}=${runtime.service.url}`)
  }
  say(`Runtime services: ${urls.join(', ')}.`)
  const directory = workspace.controlData
  mkdirSync(directory)
  await using replicas = await Replicas.start({
    program: controlProgram,
    directory,
    servers: [primary, standby],
    urls,
    signal,
  })
  say(`Control: three replicas, ${replicas.urls.join(', ')}.`)

  const notes = join(workspace.work, 'starts')
  const { graphId, owner } = await replicas.submit(wideGraph(TASKS, notes))
  say(`A graph of ${TASKS} tasks is accepted (202). ${owner} runs it.`)
  await replicas.untilEnded(graphId, BEFORE_REPLICA)
  await loseReplica(replicas, graphId, owner)
  await replicas.untilEnded(graphId, BEFORE_PRIMARY)
  await losePrimary(primary, replicas, graphId)
  await replicas.untilEnded(graphId, TASKS)
  say(`All ${TASKS} tasks have ended.`)
  return outcomeOf(await replicas.recordsOf(graphId), TASKS, notes)
}

async function loseReplica(replicas: Replicas, graphId: string, owner: string): Promise<void> {
  const ended = await replicas.endedOf(graphId)
  await replicas.kill(owner)
  const killedAt = performance.now()
  say(`kill -9 of the replica ${owner}: ${ended} tasks have ended, the others run or wait.`)
  await replicas.untilEnded(graphId, ended + 1)
  say(`Another replica goes on with the graph, ${sinceText(killedAt)} after the kill.`)
}

async function losePrimary(primary: Postgres, replicas: Replicas, graphId: string): Promise<void> {
  const ended = await replicas.endedOf(graphId)
  await primary.kill()
  const killedAt = performance.now()
  say(`kill -9 of the primary and all of its processes: ${ended} tasks have ended.`)
  await primary.standby!.promote()
  say(`The standby is the primary now, ${sinceText(killedAt)} after the kill.`)
  await replicas.untilEnded(graphId, Math.min(ended + 10, TASKS))
  say(`The graph goes on, ${sinceText(killedAt)} after the kill.`)
}

function sinceText(at: number): string {
  return formatSeconds(performance.now() - at)
}

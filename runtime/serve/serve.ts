/**
 * The service, from its start to its stop. Called by `command-line.ts`.
 *
 * A start first locks the data directory and listens. It then takes up what an earlier service left, and answers last: a
 * caller finds every task that was ever accepted.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import { advertisedUrl } from '../../shared/http/advertised-url.ts'
import { bypassProxyForLoopback } from '../../shared/http/proxy.ts'
import { serveApp } from '../../shared/http/serve-app.ts'
import { announce } from '../../shared/http/service-access.ts'
import type { Log } from '../../shared/logs/log.ts'
import { type ServiceProcess, startService } from '../../shared/process/service-process.ts'
import type { ServeConfig } from '../config.ts'
import { endLeftCgroups, sweepAbandonedCgroups } from '../tasks/force.ts'
import { type Recovered, recoverTasks } from '../tasks/recover.ts'
import { claimPlace, type Environment, type Foundation, layFoundation, type Place } from './foundation.ts'
import { buildApp, buildCallerParts, buildTaskParts, type CallerParts, type Tasks } from './parts.ts'
import { ensureRegistrable, Registration, refuseUnregisteredLabels, registeredName } from './registration.ts'

/** Milliseconds that open requests get to be answered when the service stops. */
const LAST_ANSWERS_MS = 1_000

/**
 * Undefined once the service listens; it then ends the process by itself. Else the exit code of a start that was
 * stopped.
 */
export const serve = (config: ServeConfig, env: Environment): Promise<number | undefined> =>
  startService('runtime', config, async (process) => {
    const startedAt = Date.now()
    if (config.register === '')
      refuseUnregisteredLabels(config.label) // before anything is claimed
    else ensureRegistrable(config)
    const place = await claimPlace(config, env, process.log)
    try {
      await start(config, env, place, startedAt, process)
    } catch (error) {
      await place.server.stop(0)
      throw error
    }
  })

/** The running parts, which have to be stopped. */
interface Service {
  readonly foundation: Foundation
  readonly tasks: Tasks
  readonly callers: CallerParts
  readonly rounds: ReturnType<typeof startRounds>
  readonly registration: Registration | undefined
  readonly exit: ServiceProcess['exit']
}

async function start(
  config: ServeConfig,
  env: Environment,
  place: Place,
  startedAt: number,
  { log, signals, exit }: ServiceProcess,
): Promise<void> {
  const { server } = place
  const foundation = await layFoundation(config, env, place, log, signals)
  const tasks = buildTaskParts(foundation)
  const callers = buildCallerParts(foundation, tasks)
  const app = buildApp(foundation, tasks, callers, startedAt)
  const recovered = await recover(foundation, tasks)
  signals.duringStart.throwIfAborted()
  serveApp(app, server)
  foundation.data.keep()
  announce(server.url, foundation.access, { ...recovered }, log)
  foundation.access.tokens?.watch()
  tasks.dispatcher.startWhatFits()
  const rounds = startRounds(foundation, tasks)
  cleanUp(foundation, tasks, callers)
  const registration = registrationOf(foundation, server.url)
  registration?.start()
  signals.started(stopOnce({ foundation, tasks, callers, rounds, registration, exit }))
}

/** Undefined without `--register`. */
function registrationOf({ config, env, access, log }: Foundation, listening: string): Registration | undefined {
  const { register: controlUrl, advertise, runtimeId, label: labels } = config
  if (controlUrl === '') return undefined
  bypassProxyForLoopback(process.env)
  const { token: ownToken } = access
  const token = env.SERVICE_CONTROL_TOKEN || ownToken
  const name = registeredName(runtimeId)
  return new Registration({ controlUrl, token, ownToken, name, url: advertisedUrl(advertise, listening), labels, log })
}

/** Takes over the tasks of an earlier service, and ends the remains of others. */
async function recover({ cgroups, log }: Foundation, tasks: Tasks): Promise<Recovered> {
  const recovered = recoverTasks(tasks)
  if (cgroups !== undefined) await endLeftCgroups(cgroups, (id) => tasks.inFlight.has(id), log)
  return recovered
}

/** Checks now and then what no event reports. */
const startRounds = ({ config }: Foundation, { dispatcher, complaints }: Tasks) =>
  setInterval(() => {
    dispatcher.lookAround()
    complaints.keepShort()
  }, config.dispatchPollIntervalMs)

/** Removes the remains of crashes in the background, and starts retention. */
function cleanUp({ cgroups, log }: Foundation, { networks }: Tasks, { retention }: CallerParts): void {
  networks.removeStrays()
  if (cgroups !== undefined) void sweepAbandonedCgroups(cgroups, log)
  void retention
    .removeStrays()
    .catch((error) => log.error('cannot remove stray directories', { cause: messageOf(error) }))
  retention.start()
}

function stopOnce(service: Service): (signal: NodeJS.Signals) => Promise<void> {
  let isStopping = false
  return async (signal) => {
    if (isStopping) return
    isStopping = true
    await stop(service, signal)
  }
}

async function stop(service: Service, signal: NodeJS.Signals) {
  const { foundation, tasks, callers, rounds, registration, exit } = service
  const { server, storage, log } = foundation
  log.info('stopping', { signal, running_tasks: tasks.inFlight.size })
  registration?.stop()
  foundation.access.tokens?.stop()
  callers.submissions.stop()
  tasks.dispatcher.stop()
  callers.retention.stop()
  clearInterval(rounds)
  callers.readiness.isStopping = true
  await server.stop(LAST_ANSWERS_MS)
  await tasks.launchers.close()
  tasks.networks.stop()
  closeStorage(storage, log)
  log.info('stopped')
  await exit(0)
}

/** Promises are on disk by now, and the ends of running tasks will be in their files. */
function closeStorage({ db, commit }: Foundation['storage'], log: Log): void {
  commit.settle()
  if (commit.fault !== undefined)
    log.warn('the database lacks what was not written', { cause: messageOf(commit.fault) })
  db.close()
}

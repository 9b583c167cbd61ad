/**
 * Starts the services that a first probe found missing.
 *
 * 1. Each missing service is started once. One `docker compose up -d` serves all services.
 * 2. Each started service is probed with growing pauses until it is ready, it has ended, or the time is up.
 *
 * Only the last probe counts: a service that another client started meanwhile is ready, though our own start failed.
 */

import { startAddress } from '../../shared/http/start-address.ts'
import { formatDuration } from '../../shared/settings/duration.ts'
import { type Environment, onePerUser } from '../own-services/state-dir.ts'
import { type Probe, probe, type Target } from '../probe.ts'
import type { Attempt, StartedBy } from './attempt.ts'
import { composeUp } from './compose.ts'
import { startContainer } from './container.ts'
import { Docker } from './docker.ts'
import { hintsFor } from './hints.ts'
import { readiness } from './readiness.ts'
import { CONTROL, RUNTIME, startSibling } from './sibling.ts'

export interface Options {
  /** Start our own executables. Docker starts nothing then. */
  readonly start: boolean
  /** Empty if not given, like the next two. */
  readonly composeDir: string
  readonly runtimeImage: string
  /** URL or directory of the runtime's source, for hints. */
  readonly runtimeSource: string
  /** Milliseconds in which a started service has to become ready. */
  readonly timeout: number
  /** Milliseconds for each docker command. */
  readonly dockerTimeout: number
  readonly env: Environment
}

export interface Service {
  readonly name: 'control' | 'runtime'
  readonly target: Target
}

/** A service and its last probe. */
export interface ServiceState {
  readonly service: Service
  readonly probe: Probe
  readonly startedBy?: StartedBy
  /** The attempt to start it, the result, and the fault. */
  readonly note?: string
  readonly hints?: readonly string[]
}

const isMissing = ({ probe }: ServiceState): boolean => probe.outcome !== 'ready'

/** Starts the missing services; returns the last state of all. */
export async function bringUp(states: readonly ServiceState[], options: Options): Promise<ServiceState[]> {
  const services = states.map(({ service }) => service)
  const withHints = ({ hints = [], ...state }: ServiceState): ServiceState =>
    isMissing(state) ? { ...state, hints: [...hints, ...hintsFor(state, services, options)] } : state
  return (await finalStates(states, options)).map(withHints)
}

async function finalStates(states: readonly ServiceState[], options: Options): Promise<readonly ServiceState[]> {
  const canStart = states.some((state) => isMissing(state) && typeof starterFor(state, options) !== 'string')
  if (!canStart) return states.map((state) => leftAlone(state, options))
  return onePerUser(options.env, options.timeout, async () => {
    const now = await Promise.all(states.map(probedAgain)) // another client may have started them
    const attempts = await startMissing(now, options)
    const deadline = performance.now() + options.timeout
    return Promise.all(
      now.map((state) => {
        const attempt = attempts.get(state.service)
        return attempt === undefined ? leftAlone(state, options) : settle(state, attempt, deadline, options)
      }),
    )
  })
}

const probedAgain = async (state: ServiceState): Promise<ServiceState> =>
  isMissing(state) ? { ...state, probe: await probe(state.service.target) } : state

/** State that the starters of one call share. */
interface StartContext {
  readonly docker: Docker
  /** Runs `docker compose up` in the first call; later calls share its result. */
  compose(): Promise<Attempt>
  readonly hasComposed: boolean
  /** Address of the runtime, if both services are wanted. Control gets it. */
  readonly runtimeUrl: string | undefined
}

type Starter = (context: StartContext) => Promise<Attempt> | Attempt

/** The function that starts a missing service, or the reason why nothing can. */
function starterFor({ service, probe: seen }: ServiceState, options: Options): Starter | string {
  const address = startAddress(service.target.baseUrl)
  if (typeof address === 'string') return address
  if (seen.outcome === 'answers') return 'something has this address already'
  const { start, composeDir, runtimeImage, env } = options
  if (start) {
    // A container's port may accept connections before its service does. For an executable the port is taken.
    if (seen.outcome === 'silent') return 'something has this address already'
    if (service.name === 'runtime') return () => startSibling(RUNTIME, { address, env, dataDir: undefined })
    return ({ runtimeUrl }) => {
      const own = { ...env, ...(runtimeUrl !== undefined && { SERVICE_RUNTIME_URL: runtimeUrl }) }
      return startSibling(CONTROL, { address, env: own, dataDir: env.SERVICE_DATA_DIR || undefined })
    }
  }
  if (service.name === 'runtime' && runtimeImage !== '') {
    return async (context) => {
      const isComposed = context.hasComposed && (await probe(service.target)).outcome !== 'absent'
      return isComposed ? context.compose() : startContainer(context.docker, { image: runtimeImage, address })
    }
  }
  if (composeDir !== '') return ({ compose }) => compose()
  const ways = service.name === 'runtime' ? '--start, --compose-dir or --runtime-image' : '--start or --compose-dir'
  return `that takes ${ways}`
}

/** Starts what is missing, control first. */
async function startMissing(states: readonly ServiceState[], options: Options): Promise<Map<Service, Attempt>> {
  const { env, dockerTimeout, composeDir } = options
  const docker = new Docker({ env, limitMs: dockerTimeout })
  let composed: Promise<Attempt> | undefined
  const context: StartContext = {
    docker,
    compose: () => (composed ??= composeUp(docker, { dir: composeDir, composeFile: env.COMPOSE_FILE })),
    get hasComposed() {
      return composed !== undefined
    },
    runtimeUrl: states.find(({ service }) => service.name === 'runtime')?.service.target.baseUrl,
  }
  const attempts = new Map<Service, Attempt>()
  for (const state of states.filter(isMissing)) {
    const start = starterFor(state, options)
    if (typeof start !== 'string') attempts.set(state.service, await start(context))
  }
  return attempts
}

/** The state of a service that is ready, or that nothing can start. */
function leftAlone(state: ServiceState, options: Options): ServiceState {
  if (!isMissing(state)) return state
  return { ...state, note: `${state.probe.fault}; nothing was started: ${starterFor(state, options)}` }
}

/** Waits until a started service is ready. A service whose start failed is probed once more. */
async function settle(
  state: ServiceState,
  attempt: Attempt,
  deadline: number,
  options: Options,
): Promise<ServiceState> {
  const { service } = state
  const { note, hints } = attempt
  if (!attempt.isStarted) return { service, probe: await probe(service.target), note, hints }
  const { last, exitReport } = await readiness(service.target, attempt.ended, deadline)
  attempt.release?.()
  const startedBy = attempt.by !== undefined && exitReport === undefined ? { startedBy: attempt.by } : {}
  const end = { service, probe: last, ...startedBy, hints }
  if (last.outcome === 'ready' || exitReport !== undefined) return { ...end, note: joined(note, exitReport) }
  const late = `not ready within ${formatDuration(options.timeout)} (${last.fault})`
  return { ...end, note: joined(note, late, await attempt.diagnose?.()) }
}

const joined = (...parts: readonly (string | undefined)[]): string => parts.filter(Boolean).join('; ')

/**
 * Brings up the services that a first look did not find.
 *
 * 1. Whatever may be started is started, once: one `docker compose up -d` counts for all that it is to bring.
 * 2. What was started is looked at with growing pauses until it is ready, has ended, or the time is up.
 *
 * Being ready is what counts in the end, however it came about: if a start failed because somebody else was faster,
 * the service is there all the same.
 */
import { formatDuration } from '../../shared/duration.ts'
import { GrowingPause } from '../../shared/growing-pause.ts'
import { startAddress } from '../../shared/start-address.ts'
import { PROBE_TIMEOUT_MS, type Probe, probe, type Target } from '../probe.ts'
import type { Attempt, StartedBy } from './attempt.ts'
import { composeUp } from './compose.ts'
import { startContainer } from './container.ts'
import { Docker } from './docker.ts'
import { hintsFor } from './hints.ts'
import { CONTROL, type Environment, RUNTIME, startSibling } from './sibling.ts'
import { onePerUser } from './state-dir.ts'

export interface Options {
  /** Start our own executables; then docker starts nothing. */
  readonly start: boolean
  /** Empty where there is none; so are the next two. */
  readonly composeDir: string
  readonly runtimeImage: string
  /** Where the source of the runtime is, for hints. */
  readonly runtimeSource: string
  /** Milliseconds that what was started gets to become ready. */
  readonly timeout: number
  /** Milliseconds for each of docker's commands. */
  readonly dockerTimeout: number
  readonly env: Environment
}

export interface Service {
  readonly name: 'control' | 'runtime'
  readonly target: Target
}

/** A service and what the last look at it saw. */
export interface Sight {
  readonly service: Service
  readonly probe: Probe
  readonly startedBy?: StartedBy
  /** What was tried, what came of it, and what is wrong. */
  readonly note?: string
  readonly hints?: readonly string[]
}

/** Milliseconds between two looks: a quick start is seen at once, a slow one is not disturbed. */
const PAUSES = { firstMs: 10, longestMs: 1_000 }

/** Milliseconds that even the last look at a service gets. */
const SHORTEST_LOOK_MS = 100

const isMissing = ({ probe }: Sight): boolean => probe.outcome !== 'ready'

/** The same services at the end. Those that were ready are left alone. */
export async function bringUp(sights: readonly Sight[], options: Options): Promise<Sight[]> {
  const services = sights.map(({ service }) => service)
  const withHints = ({ hints = [], ...sight }: Sight): Sight =>
    isMissing(sight) ? { ...sight, hints: [...hints, ...hintsFor(sight, services, options)] } : sight
  return (await sightsAtTheEnd(sights, options)).map(withHints)
}

async function sightsAtTheEnd(sights: readonly Sight[], options: Options): Promise<readonly Sight[]> {
  const canStart = sights.some((sight) => isMissing(sight) && typeof wayToStart(sight, options) !== 'string')
  if (!canStart) return sights.map((sight) => leftAlone(sight, options))
  return onePerUser(options.env, options.timeout, async () => {
    const now = await Promise.all(sights.map(lookAgain)) // another client may have been faster
    const attempts = await startMissing(now, options)
    const deadline = performance.now() + options.timeout
    return Promise.all(
      now.map((sight) => {
        const attempt = attempts.get(sight.service)
        return attempt === undefined ? leftAlone(sight, options) : settle(sight, attempt, deadline, options)
      }),
    )
  })
}

const lookAgain = async (sight: Sight): Promise<Sight> =>
  isMissing(sight) ? { ...sight, probe: await probe(sight.service.target) } : sight

/** What ways to start have in common during one call. */
interface Starters {
  readonly docker: Docker
  /** The one `up`, which the first caller makes. */
  compose(): Promise<Attempt>
  readonly hasComposed: boolean
  /** Where control finds the runtime, when both are asked for. */
  readonly runtimeUrl: string | undefined
}

type Way = (starters: Starters) => Promise<Attempt> | Attempt

/** How to start a service that is missing, or why nothing can be started. */
function wayToStart({ service, probe: seen }: Sight, options: Options): Way | string {
  const address = startAddress(service.target.baseUrl)
  if (typeof address === 'string') return address
  if (seen.outcome === 'answers') return 'something has this address already'
  const { start, composeDir, runtimeImage, env } = options
  if (start) {
    // The port of a container may take connections before its service does; for an executable it is simply taken.
    if (seen.outcome === 'silent') return 'something has this address already'
    if (service.name === 'runtime') return () => startSibling(RUNTIME, { address, env, dataDir: undefined })
    return ({ runtimeUrl }) => {
      const own = { ...env, ...(runtimeUrl !== undefined && { SERVICE_RUNTIME_URL: runtimeUrl }) }
      return startSibling(CONTROL, { address, env: own, dataDir: env.SERVICE_DATA_DIR || undefined })
    }
  }
  if (service.name === 'runtime' && runtimeImage !== '') {
    return async (starters) => {
      const isComposed = starters.hasComposed && (await probe(service.target)).outcome !== 'absent'
      return isComposed ? starters.compose() : startContainer(starters.docker, { image: runtimeImage, address })
    }
  }
  if (composeDir !== '') return ({ compose }) => compose()
  const ways = service.name === 'runtime' ? '--start, --compose-dir or --runtime-image' : '--start or --compose-dir'
  return `that takes ${ways}`
}

/** Starts what is missing, control first. */
async function startMissing(sights: readonly Sight[], options: Options): Promise<Map<Service, Attempt>> {
  const { env, dockerTimeout, composeDir } = options
  const docker = new Docker({ env, limitMs: dockerTimeout })
  let composed: Promise<Attempt> | undefined
  const starters: Starters = {
    docker,
    compose: () => (composed ??= composeUp(docker, { dir: composeDir, composeFile: env.COMPOSE_FILE })),
    get hasComposed() {
      return composed !== undefined
    },
    runtimeUrl: sights.find(({ service }) => service.name === 'runtime')?.service.target.baseUrl,
  }
  const attempts = new Map<Service, Attempt>()
  for (const sight of sights.filter(isMissing)) {
    const way = wayToStart(sight, options)
    if (typeof way !== 'string') attempts.set(sight.service, await way(starters))
  }
  return attempts
}

/** It is there already, or nothing can be done about it. */
function leftAlone(sight: Sight, options: Options): Sight {
  if (!isMissing(sight)) return sight
  return { ...sight, note: `${sight.probe.fault}; nothing was started: ${wayToStart(sight, options)}` }
}

/** Waits for what an attempt started; what it did not start gets one last look. */
async function settle(sight: Sight, attempt: Attempt, deadline: number, options: Options): Promise<Sight> {
  const { service } = sight
  const { note, hints } = attempt
  if (!attempt.isStarted) return { service, probe: await probe(service.target), note, hints }
  const { last, story } = await readiness(service, attempt, deadline)
  attempt.release?.()
  const startedBy = attempt.by !== undefined && story === undefined ? { startedBy: attempt.by } : {}
  const end = { service, probe: last, ...startedBy, hints }
  if (last.outcome === 'ready' || story !== undefined) return { ...end, note: joined(note, story) }
  const late = `not ready within ${formatDuration(options.timeout)} (${last.fault})`
  return { ...end, note: joined(note, late, await attempt.diagnose?.()) }
}

const joined = (...parts: readonly (string | undefined)[]): string => parts.filter(Boolean).join('; ')

/** The look that decided, and the story of what was started if it has ended by then. */
async function readiness(
  service: Service,
  attempt: Attempt & { readonly isStarted: true },
  deadline: number,
): Promise<{ last: Probe; story: string | undefined }> {
  let story: string | undefined
  const ended = attempt.ended?.then((words) => {
    story = words
  })
  const pauses = new GrowingPause(PAUSES)
  for (;;) {
    const hasEnded = story !== undefined
    const remainingMs = deadline - performance.now()
    const last = await probe(service.target, Math.min(PROBE_TIMEOUT_MS, Math.max(remainingMs, SHORTEST_LOOK_MS)))
    if (last.outcome === 'ready' || hasEnded || performance.now() >= deadline) return { last, story }
    const pause = Bun.sleep(Math.min(pauses.next(), Math.max(0, deadline - performance.now())))
    await (ended === undefined ? pause : Promise.race([pause, ended]))
  }
}

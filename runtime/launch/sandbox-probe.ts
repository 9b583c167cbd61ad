/**
 * Finds out which sandboxes this host allows: the launcher sets up each, runs nothing in it and reports the step that
 * failed (c/sandbox/probe.h).
 *
 * Takes some milliseconds, once for each start of a service.
 */

import { SANDBOX_FEATURES, type SandboxFeature } from '../plan/isolation.ts'
import { launcherArguments } from './arguments.ts'
import type { LauncherProgram } from './embedded.ts'

/** The trials: no feature, all together, each alone, a view with a rootfs, and all of these without root. */
export const PROBED = ['none', 'whole', ...SANDBOX_FEATURES, 'chroot', 'rootless'] as const
export type Probed = (typeof PROBED)[number]

/** The failed step, as in an outcome. */
export interface ProbeFault {
  readonly step: string
  readonly errno: number
}

/** For each attempt the failed step, or null. */
export type SandboxProbe = Readonly<Record<Probed, ProbeFault | null>>

/** Milliseconds that a launcher gets, enough on a busy machine. */
const PROBE_MS = 10_000

/**
 * `uid` is the user of sandboxes, for a service that runs as root. `signal` ends the probe early. Undefined if the
 * launcher does not answer.
 */
export async function probeSandbox(
  { command }: LauncherProgram,
  uid: number | undefined,
  signal?: AbortSignal,
): Promise<SandboxProbe | undefined> {
  try {
    return await probeAll((attempt) => ask([...command, ...probeArguments(attempt, uid)], signal), uid !== undefined)
  } catch (error) {
    if (error instanceof NoAnswer) return undefined
    throw error
  }
}

/** A sandbox to set up. */
interface Attempt {
  readonly features: readonly SandboxFeature[]
  /** With a rootfs. */
  readonly isRooted?: boolean
  /** As a user who is not root. */
  readonly isRootless?: boolean
}

/**
 * If all features work together, none is tried alone. The sandboxes that need no other answer are set up side by side: most of
 * a trial waits for the kernel.
 */
async function probeAll(
  attempt: (attempt: Attempt) => Promise<ProbeFault | null>,
  isRoot: boolean,
): Promise<SandboxProbe> {
  const rootlessly = () => attempt({ features: SANDBOX_FEATURES, isRootless: true })
  const first = [
    attempt({ features: SANDBOX_FEATURES }),
    attempt({ features: neededBy('mount', isRoot, true), isRooted: true }),
    isRoot ? rootlessly() : null,
  ] as const
  await Promise.allSettled(first) // whoever frees the user of sandboxes afterwards has to know that none is left
  const [whole, chroot, rootless] = await Promise.all(first)
  const results = new Map<Probed, ProbeFault | null>([['whole', whole]])
  const probe = async (name: Probed, how: Attempt) => results.set(name, whole === null ? null : await attempt(how))
  await probe('none', { features: [] })
  for (const feature of SANDBOX_FEATURES) {
    await probe(feature, { features: neededBy(feature, isRoot, results.get('mount') === null) })
  }
  results.set('chroot', chroot)
  results.set('rootless', isRoot || whole === null ? rootless : await rootlessly())
  return Object.fromEntries(results) as unknown as SandboxProbe
}

/** Without root nothing works outside a user namespace. A pid namespace is tried together with its /proc. */
function neededBy(feature: SandboxFeature, isRoot: boolean, hasMount: boolean): SandboxFeature[] {
  const needed: SandboxFeature[] = [feature]
  if (!isRoot && feature !== 'seccomp' && feature !== 'user') needed.push('user')
  if (feature === 'pid' && hasMount) needed.push('mount')
  return needed
}

/** The arguments of a task that does not run. The file view hides nothing. */
export const probeArguments = ({ features, isRooted, isRootless }: Attempt, uid: number | undefined): string[] => [
  isRootless ? '--probe-rootless' : '--probe',
  ...launcherArguments({
    ...{ task_id: 'probe', task_dir: '/', workdir: '/', command: ['true'] },
    ...{ wall_time_ms: PROBE_MS, grace_ms: 0, max_output_bytes: 1 },
    sandbox: { features, ...(uid !== undefined && { uid }), ...(isRooted && { rootfs: '/' }) },
  }),
]

class NoAnswer extends Error {}

async function ask(command: readonly string[], signal: AbortSignal | undefined): Promise<ProbeFault | null> {
  const child = Bun.spawn([...command], {
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: PROBE_MS,
    killSignal: 'SIGKILL',
    ...(signal !== undefined && { signal }),
  })
  const text = await new Response(child.stdout).text()
  const result = (await child.exited) === 0 ? parseProbe(text) : undefined
  if (result === undefined) throw new NoAnswer()
  return result
}

/** The answer of a probe: the failed step, or null. Pure. Undefined for anything else. */
export function parseProbe(text: string): ProbeFault | null | undefined {
  if (text === 'ok\n') return null
  const [, step, errno] = /^([a-z_]+) (\d{1,4})\n$/.exec(text) ?? []
  return step === undefined ? undefined : { step, errno: Number(errno) }
}

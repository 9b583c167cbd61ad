/**
 * Finds out which sandboxes this host allows: the launcher makes some in which nothing runs, and reports how far each
 * came (probe.h).
 *
 * Takes some milliseconds, once for each start of a service.
 */
import { sandboxView } from '../intake/sandbox-view.ts'
import { mountArguments } from './arguments.ts'
import type { LauncherProgram } from './embedded.ts'
import { SANDBOX_FEATURES } from './plan.ts'

/** What is tried, under the names in the launcher's answer. */
export const PROBED = ['none', 'whole', ...SANDBOX_FEATURES, 'chroot', 'rootless'] as const
export type Probed = (typeof PROBED)[number]

/** The failed step, as in an outcome. */
export interface ProbeFault {
  readonly step: string
  readonly errno: number
}

/** For each attempt the failed step, or null. */
export type SandboxProbe = Readonly<Record<Probed, ProbeFault | null>>

/** Milliseconds that the launcher gets, enough on a busy machine. */
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
  const child = Bun.spawn([...command, ...probeArguments(uid)], {
    env: {},
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: PROBE_MS,
    killSignal: 'SIGKILL',
    ...(signal !== undefined && { signal }),
  })
  const text = await new Response(child.stdout).text()
  return (await child.exited) === 0 ? parseProbe(text) : undefined
}

/** `--probe` with two lists of mounts that hide nothing: a host view, and a view with a rootfs. */
export const probeArguments = (uid: number | undefined): string[] => [
  ...['--probe', String(uid ?? 'own'), ...mountArguments(sandboxView({}))],
  ...['--chroot', ...mountArguments(sandboxView({ rootfs: '/' }))],
]

/** Pure. Undefined unless the answer is complete. */
export function parseProbe(text: string): SandboxProbe | undefined {
  const lines = new Map(text.split('\n').map((line) => [line.split(' ', 1)[0], line.split(' ').slice(1)]))
  const results = PROBED.map((name) => [name, resultOf(lines.get(name))] as const)
  return results.every(([, result]) => result !== undefined)
    ? (Object.fromEntries(results) as unknown as SandboxProbe)
    : undefined
}

function resultOf(words: readonly string[] = []): ProbeFault | null | undefined {
  const [step, errno, ...more] = words
  if (step === 'ok' && errno === undefined) return null
  if (step === undefined || !/^\d{1,4}$/.test(errno ?? '') || more.length > 0) return undefined
  return { step, errno: Number(errno) }
}

/**
 * Makes all escape attempts in temporary sandboxes, for `taskmill-runtime doctor --escape`.
 *
 * Baits lie on the host, where no sandbox may reach them. All attempts run four times: in the strictest sandbox of this host,
 * with limits; in the default sandbox of a task; in that one with rules for its network; and in that one with the network of
 * the host. The last two need a network of its own to differ from. Each time, one sandbox runs all harmless attempts. An attempt
 * that may end the whole sandbox gets its own.
 */
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DEFAULT_NAMESPACES } from '../../shared/request/sandbox.ts'
import { ownDir, removeLeftDirs } from '../host/own-dirs.ts'
import type { TaskCgroup } from '../host/task-cgroups.ts'
import type { LauncherProgram } from '../launch/embedded.ts'
import { explainFault } from '../launch/faults.ts'
import type { LaunchSandbox } from '../launch/plan.ts'
import { runInSandbox, type ThrowAwayEnding, type ThrowAwayOptions } from '../launch/throw-away.ts'
import type { SandboxFeature } from '../plan/isolation.ts'
import { type Attempt, type Listed, parseAttempts, parseList } from './attempts.ts'
import { layBaits } from './baits.ts'
import linuxArm64 from './bin/taskmill-escape-linux-arm64' with { type: 'file' }
import linuxX64 from './bin/taskmill-escape-linux-x64' with { type: 'file' }
import { type HostNetwork, inHostNetwork } from './host-network.ts'
import { type RuledNetwork, type RuledNetworkPlaces, ruledNetwork } from './ruled-network.ts'
import { type EscapeRun, verdicts, worstOf } from './verdicts.ts'

/** The sandbox could not be made: nothing was tried. */
export class NoSandbox extends Error {
  override readonly name = 'NoSandbox'
}

export interface EscapeOptions {
  readonly launcher: LauncherProgram
  /** The sandbox of a task that requests all features of this host, without the workspace. */
  readonly sandbox: Omit<LaunchSandbox, 'workspace' | 'script'>
  /** A cgroup for the sandbox of this name. Undefined if there are no cgroups. */
  readonly groupOf: (name: string) => TaskCgroup | undefined
  /** Whether the sandboxes get no memory limit even if there are cgroups. Default: false. */
  readonly isMemoryUnlimited?: boolean
  /** Additional hidden directories for baits. */
  readonly hiddenDirectories: readonly string[]
  /** Is made for a secret, where a sandbox hides those of a service. */
  readonly secretsDir: string
  /** Size of /tmp and of /dev/shm, which are in memory. */
  readonly memoryFilesBytes: number
  /** Aborts the run and removes everything it made. */
  readonly signal?: AbortSignal
}

const EMBEDDED: Readonly<Record<string, string>> = { 'linux-x64': linuxX64, 'linux-arm64': linuxArm64 }

/** Its name in a workspace. */
const PROGRAM = 'taskmill-escape'

const PROGRAM_OF_ROOT = 'taskmill-escape-of-root'

/** Setuid and setgid, executable for every user. */
const SETUID_MODE = 0o6755

/** Milliseconds for all attempts of a sandbox: those of a busy machine, or of an emulated one, take a while. */
const WALL_TIME_MS = 120_000

type Limits = NonNullable<ThrowAwayOptions['limits']>

const MEMORY_BYTES = 64 * 1024 * 1024
const PIDS_MAX = 32

/** Directories of the host that sandboxes hide. Only some of them exist or are writable for a user other than root. */
const HIDDEN_DIRECTORIES = ['/run', `/run/user/${process.getuid?.()}`, '/home', '/root', '/tmp', '/var/tmp']

export interface Escapes {
  /** The worst verdict of each attempt. */
  readonly attempts: readonly Attempt[]
  readonly hostNetwork: HostNetwork
}

/** Throws `NoSandbox`, and the abort reason of `signal`. */
export async function tryToEscape(options: EscapeOptions): Promise<Escapes> {
  const hidden = [...HIDDEN_DIRECTORIES, ...options.hiddenDirectories]
  removeLeftDirs(hidden)
  const place = ownDir('escape')
  try {
    chmodSync(place, 0o755)
    const program = join(place, PROGRAM)
    putEscapeProgram(program)
    const listed = parseList(Bun.spawnSync([program, '--list'], { env: {} }).stdout.toString())
    const hiddenPlaces = [...new Set([...hidden, place])]
    const everywhere = { program, listed, hiddenPlaces }
    const strictest = await attemptsIn(options, everywhere)
    const defaults = defaultsOf(options)
    const byDefault = await attemptsIn(defaults, everywhere)
    const worst = worstOf(strictest, byDefault, 'in the default sandbox')
    if (!defaults.sandbox.features.includes('net')) return { attempts: worst, hostNetwork: ALWAYS_OF_HOST }
    const withRules = await attemptsIn(defaults, {
      ...everywhere,
      rules: { socketsDir: place, secretsDir: options.secretsDir },
    })
    const worstOfOwn = worstOf(worst, withRules, 'in a sandbox whose network has rules')
    if (canReadToken(defaults.sandbox)) return { attempts: worstOfOwn, hostNetwork: TOKEN_IS_READABLE }
    const { attempts, has } = inHostNetwork(
      await attemptsIn(withHostNetwork(defaults), { ...everywhere, hasToken: true }),
    )
    return { attempts: worstOf(worstOfOwn, attempts, 'with the network of the host'), hostNetwork: { has } }
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

const ALWAYS_OF_HOST: HostNetwork = {
  notTried: 'no sandbox of this host has another network, so what that lets through is not blocked above',
}

const TOKEN_IS_READABLE: HostNetwork = {
  notTried: 'strict tasks are refused it here: without a mount namespace a task can read the token of the service',
}

/** A service that is not root runs tasks as its own user. */
const canReadToken = ({ features, uid }: EscapeOptions['sandbox']): boolean =>
  uid === undefined && !features.includes('mount')

/** The sandbox of a task that requests the network of the host. */
const withHostNetwork = (options: EscapeOptions): EscapeOptions => ({
  ...options,
  sandbox: { ...options.sandbox, features: options.sandbox.features.filter((feature) => feature !== 'net') },
})

/** The sandbox of a task that requests only the profile: no rootfs, default features, a limit on processes. */
export function defaultsOf(options: EscapeOptions): EscapeOptions {
  const { rootfs: _, ...sandbox } = options.sandbox
  const isDefault = (feature: SandboxFeature) =>
    feature === 'user' || feature === 'seccomp' || DEFAULT_NAMESPACES[feature]
  return {
    ...options,
    sandbox: { ...sandbox, features: sandbox.features.filter(isDefault) },
    groupOf: (name) => groupForPids(options.groupOf(name)),
    isMemoryUnlimited: true,
  }
}

/** Like the launch plan of such a task: with cgroup v1 only the cgroup of the pids controller. */
function groupForPids(group: TaskCgroup | undefined): TaskCgroup | undefined {
  if (group?.version !== 1) return group
  return group.pids_path === undefined ? undefined : { version: 1, pids_path: group.pids_path }
}

interface Surroundings {
  /** The path of taskmill-escape on the host. */
  readonly program: string
  readonly listed: readonly Listed[]
  /** Directories for baits. */
  readonly hiddenPlaces: readonly string[]
  /** Directories for a network with rules. Undefined: the network has none. */
  readonly rules?: RuledNetworkPlaces
  /** Whether the stand-in for the API requires a token. Default: false. */
  readonly hasToken?: boolean
}

/** All attempts in sandboxes of one kind, with their own baits. */
async function attemptsIn(
  options: EscapeOptions,
  { program, listed, hiddenPlaces, rules, hasToken = false }: Surroundings,
): Promise<Attempt[]> {
  await using baits = await layBaits(program, hiddenPlaces, { hasToken })
  using network = rules === undefined ? undefined : ruledNetwork(rules, baits)
  const runIt = (name: string, only: string[]) => run(options, name, baits.list, only, network)
  const together = await runIt('escape', [])
  const alone = new Map<string, EscapeRun>()
  for (const { name, isAlone } of listed) if (isAlone) alone.set(name, await runIt(`escape-${name}`, ['--only', name]))
  return verdicts(listed, together, alone, await baits.collect())
}

async function run(
  options: EscapeOptions,
  name: string,
  baits: readonly string[],
  only: string[],
  network: RuledNetwork | undefined,
): Promise<EscapeRun> {
  const { launcher, sandbox, groupOf, isMemoryUnlimited = false, memoryFilesBytes, signal } = options
  const isRoot = sandbox.uid !== undefined
  const hasMounts = sandbox.features.includes('mount')
  const limits = limitsIn(groupOf(name), isMemoryUnlimited)
  const all = [
    ...baits,
    ...(network?.baits ?? []),
    ...(isRoot ? [`setuid=${PROGRAM_OF_ROOT}`] : []),
    ...(hasMounts ? [`tmp-bytes=${memoryFilesBytes}`, `shm-bytes=${memoryFilesBytes}`] : []),
    ...(limits.pids_max === undefined ? [] : [`pids-max=${limits.pids_max}`]),
    ...(limits.memory_max === undefined ? [] : [`memory-bytes=${limits.memory_max}`]),
  ]
  const ended = await runInSandbox(launcher, {
    sandbox,
    command: [`./${PROGRAM}`, ...only, ...all.flatMap((bait) => ['--bait', bait])],
    limits,
    wallTimeMs: WALL_TIME_MS,
    ...(network !== undefined && { egress: network.egress }),
    ...(signal !== undefined && { signal }),
    prepare: ({ workspace }) => {
      putEscapeProgram(join(workspace, PROGRAM))
      if (isRoot) putEscapeProgram(join(workspace, PROGRAM_OF_ROOT), SETUID_MODE)
      writeFileSync(join(dirname(workspace), 'secret'), 'beside the workspace\n')
    },
  })
  return runOf(ended)
}

function limitsIn(cgroup: TaskCgroup | undefined, isMemoryUnlimited: boolean): Limits {
  if (cgroup === undefined) return {}
  const has = (path: string | undefined) => cgroup.version === 2 || path !== undefined
  const { pids_path, memory_path } = cgroup.version === 1 ? cgroup : {}
  return {
    cgroup,
    ...(has(pids_path) && { pids_max: PIDS_MAX }),
    ...(!isMemoryUnlimited && has(memory_path) && { memory_max: MEMORY_BYTES }),
  }
}

function runOf({ outcome, stdout, stderr, complaints }: ThrowAwayEnding): EscapeRun {
  const ending = outcome?.ending
  if (outcome === undefined || ending === undefined) throw new NoSandbox(complaints.trim() || 'it left no record')
  if (ending.how === 'sandbox_setup_failed' || ending.how === 'launch_failed')
    throw new NoSandbox(explainFault(ending.step, ending.errno).message)
  const how =
    ending.how === 'exited'
      ? `exit code ${ending.exit_code}`
      : ending.how === 'signaled'
        ? `signal ${ending.signal}`
        : ending.how
  return {
    said: parseAttempts(stdout),
    ending: `the sandbox ended with ${how}${stderr === '' ? '' : ` (${stderr.trim()})`}`,
    isEndedByLimit: (outcome.oom_kills ?? 0) > 0,
  }
}

/** Readable and executable for every user, because the task may have another uid. */
const PROGRAM_MODE = 0o555

/** Writes `taskmill-escape`, which is embedded in our executable, for this platform to `path`. Throws if there is none. */
export function putEscapeProgram(path: string, mode = PROGRAM_MODE): void {
  const embedded = EMBEDDED[`${process.platform}-${process.arch}`]
  if (embedded === undefined)
    throw new Error(`there is nothing to try to escape with on ${process.platform} ${process.arch}`)
  writeFileSync(path, readFileSync(embedded))
  chmodSync(path, mode)
}

/** The targets of the suite: our launcher, our service, bwrap, and the minimal cost of a sandbox. */
import { chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { launcherArguments } from '../../runtime/launch/arguments.ts'
import type { SandboxPolicy } from '../../shared/contract/runtime-request.ts'
import { compiledC } from '../compiled-c.ts'
import type { Lifetime } from '../lifetime.ts'
import { FLOOR } from '../report.ts'
import { commandLoop, type SpawnLoop } from '../runtime/loops.ts'
import { commandTarget, copiedProgram, quoted, type ServerTarget } from '../server.ts'
import type { Target, Workload } from '../suite.ts'
import type { SandboxSizes } from './sizes.ts'
import { compiledTurns, type Turn, type Turns } from './turns.ts'

export interface SandboxTarget extends Target {
  /** A command that runs /bin/true in a sandbox, ready to be run so many times; `{n}` in it is the number of the launch. */
  readonly commandFor: (launches: number) => readonly string[]
  /** Of all targets of the run. */
  readonly times: LaunchTimes
  /** Ours alone: the service, and what it is compared with. */
  readonly server?: ServerTarget
  readonly rival?: SandboxTarget
  /** The same command over and over. */
  readonly loop?: SpawnLoop
}

export type SandboxWorkload = Workload<SandboxTarget, SandboxSizes>

/** What tasks of the service ask for: the profile as it is. */
export const SANDBOX: SandboxPolicy = { profile: 'linux_sandbox' }

const LAUNCHERS = join(dirname(dirname(import.meta.dir)), 'runtime/launch/bin')
const HIDDEN = ['/run', '/home', '/root', '/var/tmp']
const SANDBOX_UID = 65_531

export async function sandboxTargets(lifetime: Lifetime): Promise<SandboxTarget[]> {
  const workspace = sandboxWorkspace(lifetime)
  const bwrap = bwrapCommand(workspace)
  const floor = await compiledFloor(lifetime)
  const targets: SandboxTarget[] = []
  const times = new LaunchTimes(await compiledTurns(lifetime), targets)
  const others: SandboxTarget[] = []
  if (bwrap !== undefined) others.push(await loopTarget('bwrap', bwrap.join(' '), bwrap, times, lifetime))
  if (floor !== undefined) others.push(await loopTarget(FLOOR, 'floor.c', [floor, '/bin/true'], times, lifetime))
  const rival = others.find(({ name }) => name === 'bwrap')
  const ours: SandboxTarget = {
    name: 'taskmill',
    description: 'taskmill-launcher; taskmill-runtime serve',
    commandFor: ourLaunches(workspace),
    times,
    server: await ourServer(lifetime),
    ...(rival !== undefined && { rival }),
  }
  targets.push(ours, ...others)
  return targets
}

/** A directory that the user of a sandbox may write. */
export function sandboxWorkspace({ dir }: Lifetime): string {
  const workspace = join(dir, 'workspace')
  mkdirSync(workspace, { recursive: true })
  if (isRoot) chownSync(workspace, SANDBOX_UID, SANDBOX_UID)
  return workspace
}

/** A program that only clones and executes its arguments; undefined where there is no compiler. */
export const compiledFloor = (lifetime: Lifetime): Promise<string | undefined> =>
  compiledC(
    join(import.meta.dir, 'floor.c'),
    ['-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector'],
    lifetime,
  )

const isRoot = process.getuid?.() === 0

async function loopTarget(
  name: string,
  description: string,
  command: readonly string[],
  times: LaunchTimes,
  lifetime: Lifetime,
): Promise<SandboxTarget> {
  const loop = await commandLoop(name, command, lifetime)
  return { name, description, commandFor: () => command, times, ...(loop !== undefined && { loop }) }
}

/**
 * The launcher with what a task of the service gets by default; each launch has a directory of its own. In memory, for the
 * last thing that a launcher does, when the service knows the end already, is to wait for the disk.
 */
function ourLaunches(workspace: string): SandboxTarget['commandFor'] {
  const memory = mkdtempSync('/dev/shm/taskmill-bench-')
  process.on('exit', () => rmSync(memory, { recursive: true, force: true }))
  const launcher = join(LAUNCHERS, `taskmill-launcher-${process.platform}-${process.arch}`)
  let batches = 0
  return (launches) => {
    const tasks = join(memory, `${batches++}`)
    for (let n = 0; n < launches; n++) mkdirSync(join(tasks, `${n}`), { recursive: true })
    const plan = launcherArguments({
      ...{ task_id: 'bench', task_dir: join(tasks, '{n}'), workdir: workspace, command: ['/bin/true'] },
      ...{ wall_time_ms: 60_000, grace_ms: 1_000, max_output_bytes: 1_000_000 },
      sandbox: {
        features: ['mount', 'pid', 'uts', 'ipc', 'net', 'user', 'seccomp'],
        ...(isRoot && { uid: SANDBOX_UID }),
        ...{ workspace, masks: HIDDEN },
      },
    })
    return [launcher, ...plan]
  }
}

/** bwrap with the same namespaces and the same view of the host; it has no filter, no limits, and keeps no record. */
export function bwrapCommand(workspace: string): string[] | undefined {
  const program = Bun.which('bwrap')
  if (program === null) return undefined
  return [
    ...[
      program,
      '--unshare-user',
      '--unshare-pid',
      '--unshare-uts',
      '--unshare-ipc',
      '--unshare-net',
      '--cap-drop',
      'ALL',
    ],
    ...(isRoot ? ['--uid', String(SANDBOX_UID), '--gid', String(SANDBOX_UID)] : []),
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
    ...HIDDEN.flatMap((path) => ['--tmpfs', path]),
    ...['--bind', workspace, workspace, '--chdir', workspace, '/bin/true'],
  ]
}

async function ourServer(lifetime: Lifetime): Promise<ServerTarget> {
  const program = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const serve = `${program} serve --listen-addr 127.0.0.1:{port} --data-dir {dir} --max-running-tasks {slots}`
  const kind = { healthPath: '/healthz', fill: { slots: '4' } }
  return commandTarget('taskmill', `${serve} --max-queued-tasks 20000`, kind, lifetime)
}

/** All launches of a round are timed together, by turns, when the first target asks; each then takes its own times. */
export class LaunchTimes {
  readonly #times = new Map<string, Turn>()
  readonly #taken = new Set<string>()
  constructor(
    private readonly turns: Turns | undefined,
    private readonly targets: readonly SandboxTarget[],
  ) {}

  async take({ name }: SandboxTarget, { launches, launchesMs }: SandboxSizes): Promise<Turn | undefined> {
    if (this.turns === undefined) return undefined
    if (this.#taken.size === 0) {
      const commands = this.targets.map(({ commandFor }) => commandFor(launches))
      const times = await this.turns.time(commands, launches, launchesMs)
      for (const [i, target] of this.targets.entries()) this.#times.set(target.name, times[i]!)
    }
    this.#taken.add(name)
    if (this.#taken.size === this.targets.length) this.#taken.clear()
    return this.#times.get(name)
  }

  /** Those of another target in the same round. */
  look(target: SandboxTarget): Turn | undefined {
    return this.#times.get(target.name)
  }
}

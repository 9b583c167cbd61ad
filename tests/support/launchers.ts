/**
 * Lists the launchers, and runs one task with one of them.
 *
 * The tests in tests/runtime/launch run over each launcher: the checked-in one, the same sources built with
 * sanitizers, and the portable one.
 */
import { describe, test } from 'bun:test'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Subprocess } from 'bun'
import { launcherArguments } from '../../runtime/launch/arguments.ts'
import { readRecord, requestKill } from '../../runtime/launch/launcher-files.ts'
import { type LaunchedProcess, type Outcome, parseOutcome, parseStarted } from '../../runtime/launch/outcome.ts'
import type { LaunchDescriptors, LaunchPlan, LaunchSandbox } from '../../runtime/launch/plan.ts'
import { ROOT_WORKSPACE } from '../../runtime/launch/sandbox-view.ts'
import { wrapEnvironment } from '../../runtime/portable/environment.ts'
import { killGroup } from '../../shared/process/process-group.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

const ROOT = join(import.meta.dir, '../..')
const SOURCES = join(ROOT, 'runtime/launch')

export interface LauncherVariant {
  readonly command: readonly string[]
  /** The one that runs on Bun, which cannot do everything. */
  readonly isPortable: boolean
}

/** The one that is checked in, or a fresh build of it (scripts/launcher-check). */
export const shippedLauncher: LauncherVariant = {
  command: [
    process.env.TASKMILL_TEST_LAUNCHER ?? join(SOURCES, `bin/taskmill-launcher-${process.platform}-${process.arch}`),
  ],
  isPortable: false,
}

export const portableLauncher: LauncherVariant = {
  command: [process.execPath, join(ROOT, 'tests/fixtures/portable-launcher.ts')],
  isPortable: true,
}

/** Describes `cases` for each launcher that this machine can run. */
export function describeLaunchers(
  subject: string,
  cases: (variant: LauncherVariant) => void,
  { isPortableIncluded = true } = {},
): void {
  describe(`${subject}, by the launcher`, () => cases(shippedLauncher))
  const checked = checkedLauncher()
  const name = `${subject}, by the launcher under sanitizers`
  if ('path' in checked) describe(name, () => cases({ command: [checked.path], isPortable: false }))
  else describe.skip(`${name} (skipped: ${checked.missing})`, () => cases({ command: [], isPortable: false }))
  if (isPortableIncluded) describe(`${subject}, by the portable launcher`, () => cases(portableLauncher))
}

/** `test`, for what the portable launcher does not promise: there the case is not even listed. */
export const compiledOnly = (variant: LauncherVariant): typeof test =>
  variant.isPortable ? ((() => {}) as unknown as typeof test) : test

/** `test`, for what only root can arrange: another user, a disk that is full. */
export function rootTest(name: string, body: () => void | Promise<void>): void {
  if (process.getuid?.() === 0) test(name, body)
  else test.skip(`${name} (skipped: only root can arrange that)`, body)
}

/** Made of the present sources, once for all test files. */
function checkedLauncher(): { path: string } | { missing: string } {
  const canBuild =
    'command -v make && echo "#include <stdlib.h>" | gcc -fsanitize=address,undefined -c -x c -o /dev/null -'
  if (Bun.spawnSync(sh(canBuild), { stderr: 'ignore' }).exitCode !== 0) return { missing: 'gcc or make is not here' }
  const hash = new Bun.CryptoHasher('sha256')
  for (const file of ['Makefile', ...new Bun.Glob('c/**/*.[ch]').scanSync({ cwd: SOURCES })].sort()) {
    hash.update(file).update(readFileSync(join(SOURCES, file)))
  }
  const path = join(ROOT, `dist/taskmill-launcher-checked-${hash.digest('hex').slice(0, 16)}`)
  if (!existsSync(path)) buildChecked(path)
  // The sanitizers need addresses that not every kernel leaves them.
  if (Bun.spawnSync([path], { stderr: 'ignore' }).exitCode !== 125) return { missing: 'the sanitizers do not run here' }
  return { path }
}

function buildChecked(path: string): void {
  const aside = join(ROOT, `dist/.build-launcher-${process.pid}`)
  mkdirSync(aside, { recursive: true })
  const make = Bun.spawnSync(['make', '-s', '-C', SOURCES, 'checked', `OUT=${aside}`], { stderr: 'pipe' })
  if (make.exitCode !== 0) throw new Error(`cannot build the launcher under sanitizers:\n${make.stderr}`)
  const dist = dirname(path)
  renameSync(join(aside, 'taskmill-launcher-checked'), path)
  // Another test process may have built the same one, and use it.
  const isOlder = (name: string) => name.startsWith('taskmill-launcher-checked-') && name !== basename(path)
  for (const name of readdirSync(dist).filter(isOlder)) rmSync(join(dist, name), { force: true })
  rmSync(aside, { recursive: true })
}

export type LaunchOptions = Partial<Omit<LaunchPlan, 'command' | 'sandbox'>> & {
  /** Its workspace is the working directory, which belongs to its user. */
  readonly sandbox?: Omit<LaunchSandbox, 'workspace'>
  readonly command: readonly [string, ...string[]]
  /** All that the task gets to see. */
  readonly env?: Readonly<Record<string, string>>
  readonly descriptors?: LaunchDescriptors
  /** What the launcher finds as its descriptors 3, 4, ... */
  readonly inherited?: readonly number[]
  /** Runs the launcher through this command. */
  readonly through?: readonly string[]
  readonly uid?: number
  /** Arguments as they are, instead of those of the plan. */
  readonly argv?: readonly string[]
}

/** A task under way, or ended. Gone with all its files at the end of its block. */
export class LaunchedTask implements AsyncDisposable {
  constructor(
    readonly dir: string,
    readonly workdir: string,
    readonly launcher: Subprocess<'ignore', 'ignore', 'pipe'>,
    private readonly isPortable: boolean,
    private readonly remove: () => void,
  ) {
    this.stderrText = new Response(launcher.stderr).text()
  }
  private readonly stderrText: Promise<string>

  /** What the launcher itself had to say. */
  async complaints(): Promise<string> {
    return await this.stderrText
  }

  /** The launcher's exit code, once it has ended. */
  get exited(): Promise<number> {
    return this.launcher.exited
  }

  file(name: string): string {
    return readFileSync(join(this.dir, name), 'utf8')
  }

  get stdout(): string {
    return this.file('stdout.log')
  }

  /** The task's stdout as soon as it holds `text`. */
  async printed(text: string): Promise<string> {
    return await until(
      () => (existsSync(join(this.dir, 'stdout.log')) ? this.stdout : ''),
      (stdout) => stdout.includes(text),
    )
  }

  /** Who runs, as soon as it is written down. */
  async started(): Promise<LaunchedProcess> {
    const found = await until(() => ['started', 'outcome'].map((name) => this.readOr(name)).find((text) => text !== ''))
    const started = parseStarted(found!)
    if (started === undefined) throw new Error(`not a record of who runs: ${found}`)
    return started
  }

  /** How it ended. Fails when there is no outcome, or the launcher had to complain. */
  async outcome(): Promise<Outcome> {
    await this.exited
    const complaints = await this.complaints()
    const text = this.readOr('outcome')
    const outcome = parseOutcome(text)
    if (outcome === undefined) throw new Error(`no outcome: ${text}\n${complaints}`)
    const hasStarted = outcome.ending.how !== 'launch_failed' && outcome.ending.how !== 'sandbox_setup_failed'
    if (hasStarted && complaints !== '') throw new Error(`the launcher complained: ${complaints}`)
    return outcome
  }

  private readOr(name: string): string {
    try {
      return this.file(name)
    } catch {
      return '' // not there, or just renamed
    }
  }

  /** A portable launcher that was killed leaves its task. */
  private endGroup(): void {
    if (!existsSync(join(this.dir, 'started'))) return
    const { process: who, outcome } = readRecord(this.dir)
    if (who !== undefined && outcome === undefined) void killGroup(who.pgid, 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.launcher.exitCode === null && this.launcher.signalCode === null) {
      // What we started may be something that runs the launcher.
      if (!requestKill(this.dir)) terminate(readRecord(this.dir).process?.launcher_pid ?? this.launcher.pid)
      await Promise.race([this.exited, Bun.sleep(10_000).then(() => this.launcher.kill('SIGKILL'))])
    }
    await this.exited
    if (this.isPortable) this.endGroup()
    this.remove()
  }
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // it has ended by itself
  }
}

/** What a launcher says of a fault. Each C library has its own words for the system's reason. */
export const complaintOf = (step: string): RegExp => new RegExp(`^taskmill-launcher: task task-1: ${step}: [^\\n]+\\n$`)

/** The environment of tasks under test: enough to find programs, and the mark by which left processes are found. */
export const taskEnv: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  ...(process.env.TASKMILL_TEST_RUN === undefined ? {} : { TASKMILL_TEST_RUN: process.env.TASKMILL_TEST_RUN }),
}

export function launch(variant: LauncherVariant, options: LaunchOptions): LaunchedTask {
  const { env = taskEnv, descriptors, inherited = [], through = [], uid, argv, sandbox, ...given } = options
  const temp = tempDir()
  const work = join(temp.path, 'work')
  const plan: LaunchPlan = {
    task_id: 'task-1',
    task_dir: join(temp.path, 'task'),
    workdir: sandbox?.rootfs === undefined ? work : ROOT_WORKSPACE,
    ...(sandbox !== undefined && { sandbox: { workspace: work, ...sandbox } }),
    wall_time_ms: 60_000,
    grace_ms: 10_000,
    max_output_bytes: 1_000_000_000,
    ...given,
  }
  const own = [plan.task_dir, sandbox === undefined ? plan.workdir : work].filter((dir) => dir.startsWith(temp.path))
  for (const dir of own) mkdirSync(dir)
  if (sandbox?.uid !== undefined) chownSync(work, sandbox.uid, sandbox.uid)
  if (uid !== undefined) for (const dir of [temp.path, ...own]) chownSync(dir, uid, uid)
  const launcher = Bun.spawn([...through, ...variant.command, ...(argv ?? launcherArguments(plan, descriptors))], {
    env: variant.isPortable ? wrapEnvironment(env) : { ...env },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', ...inherited] as ['ignore', 'ignore', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  return new LaunchedTask(plan.task_dir, work, launcher, variant.isPortable, () => temp[Symbol.dispose]())
}

/** Runs a task to its end. */
export async function run(variant: LauncherVariant, options: LaunchOptions) {
  await using task = launch(variant, options)
  const outcome = await task.outcome()
  return {
    ...outcome,
    stdout: task.stdout,
    stderr: task.file('stderr.log'),
    code: await task.exited,
    workdir: task.workdir,
  }
}

export const sh = (script: string): [string, ...string[]] => ['/bin/sh', '-c', script]

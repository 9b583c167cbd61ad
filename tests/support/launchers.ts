/**
 * The launchers that there are, and one task run by one of them.
 *
 * Every case of tests/runtime/launcher runs over each of them: the one that is shipped, and the same sources built with
 * the sanitizers, which find what a test cannot see.
 */
import { describe } from 'bun:test'
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { launcherArguments } from '../../runtime/launcher/arguments.ts'
import { type LaunchedProcess, type Outcome, parseOutcome, parseStarted } from '../../runtime/launcher/outcome.ts'
import type { LaunchDescriptors, LaunchPlan } from '../../runtime/launcher/plan.ts'
import { requestKill } from '../../runtime/launcher/spawn.ts'
import { tempDir } from './temp.ts'
import { until } from './until.ts'

const ROOT = join(import.meta.dir, '../..')
const SOURCES = join(ROOT, 'runtime/launcher')

export interface LauncherVariant {
  readonly name: string
  readonly command: readonly string[]
}

/** Describes `cases` for each launcher that this machine can run. */
export function describeLaunchers(subject: string, cases: (variant: LauncherVariant) => void): void {
  const checked = checkedLauncher()
  const shipped = join(SOURCES, `bin/taskmill-launcher-${process.platform}-${process.arch}`)
  describe(`${subject}, by the launcher`, () => cases({ name: 'shipped', command: [shipped] }))
  const name = `${subject}, by the launcher under sanitizers`
  if ('path' in checked) describe(name, () => cases({ name: 'checked', command: [checked.path] }))
  else describe.skip(`${name} (skipped: ${checked.missing})`, () => cases({ name: 'checked', command: [] }))
}

/** Made of the present sources, once for all test files. */
function checkedLauncher(): { path: string } | { missing: string } {
  const canBuild =
    'command -v make && echo "#include <stdlib.h>" | gcc -fsanitize=address,undefined -c -x c -o /dev/null -'
  if (Bun.spawnSync(sh(canBuild), { stderr: 'ignore' }).exitCode !== 0) return { missing: 'gcc or make is not here' }
  const hash = new Bun.CryptoHasher('sha256')
  for (const file of readdirSync(SOURCES).sort()) {
    if (/\.[ch]$|^Makefile$/.test(file)) hash.update(file).update(readFileSync(join(SOURCES, file)))
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
  renameSync(join(aside, 'taskmill-launcher-checked'), path)
  rmSync(aside, { recursive: true })
}

export type LaunchOptions = Partial<Omit<LaunchPlan, 'command'>> & {
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
    const found = await until(
      () => ['started', 'outcome'].map((name) => this.readOr(name)).find((text) => text !== ''),
      (text) => text !== undefined,
    )
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
    return existsSync(join(this.dir, name)) ? this.file(name) : ''
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.launcher.exitCode === null && this.launcher.signalCode === null) {
      // Not by a signal: what we started may be something that runs the launcher.
      if (!requestKill(this.dir)) this.launcher.kill('SIGTERM')
      await Promise.race([this.exited, Bun.sleep(10_000).then(() => this.launcher.kill('SIGKILL'))])
    }
    await this.exited
    this.remove()
  }
}

/** The environment of tasks under test: enough to find programs, and the mark by which left processes are found. */
export const taskEnv: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  ...(process.env.TASKMILL_TEST_RUN === undefined ? {} : { TASKMILL_TEST_RUN: process.env.TASKMILL_TEST_RUN }),
}

export function launch(variant: LauncherVariant, options: LaunchOptions): LaunchedTask {
  const { env = taskEnv, descriptors, inherited = [], through = [], uid, argv, ...given } = options
  const temp = tempDir()
  const plan: LaunchPlan = {
    task_id: 'task-1',
    task_dir: join(temp.path, 'task'),
    workdir: join(temp.path, 'work'),
    wall_time_ms: 60_000,
    grace_ms: 10_000,
    max_output_bytes: 1_000_000_000,
    ...given,
  }
  const own = [plan.task_dir, plan.workdir].filter((dir) => dir.startsWith(temp.path))
  for (const dir of own) mkdirSync(dir)
  if (uid !== undefined) for (const dir of [temp.path, ...own]) chownSync(dir, uid, uid)
  const launcher = Bun.spawn([...through, ...variant.command, ...(argv ?? launcherArguments(plan, descriptors))], {
    env: { ...env },
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', ...inherited] as ['ignore', 'ignore', 'pipe'],
    ...(uid === undefined ? {} : { uid, gid: uid }),
  })
  return new LaunchedTask(plan.task_dir, plan.workdir, launcher, () => temp[Symbol.dispose]())
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

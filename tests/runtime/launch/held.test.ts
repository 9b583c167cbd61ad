/**
 * Goal: a held launcher sets its task up and runs nothing of it until it is released; if it is discarded, or whoever holds it is
 * gone, nothing of it ever runs and nothing is left. Method: bare fork servers, whose launches the test holds; in sandboxes with
 * cgroups where the machine has them.
 */
import { describe, expect, test } from 'bun:test'
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { wordOnLaunch } from '../../../runtime/launch/launch-request.ts'
import { isLauncherAlive, readRecord, requestKill } from '../../../runtime/launch/launcher-files.ts'
import type { LaunchPlan } from '../../../runtime/launch/plan.ts'
import { tryLock } from '../../../shared/files/directory-lock.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { BareForkServer } from '../../support/fork-servers.ts'
import { describeLaunchers, type LauncherVariant, sh } from '../../support/launchers.ts'
import { MASKS, missingSandbox, SANDBOX_UID, USUAL } from '../../support/sandboxes.ts'
import { childrenOf, gone, stopProcess } from '../../support/task-processes.ts'
import { isAlive, until } from '../../support/until.ts'

const { EAGAIN, ENOENT } = constants.errno

const isRoot = process.getuid?.() === 0
const missing = missingSandbox ?? missingCgroups
const noted = (reason: string | undefined) => (reason === undefined ? '' : ` (skipped: ${reason})`)

describeLaunchers('a held launcher', cases, { isPortableIncluded: false })

/** A fork server, and one task that it holds. */
class Held implements AsyncDisposable {
  readonly forkServer: BareForkServer

  constructor(variant: LauncherVariant) {
    this.forkServer = new BareForkServer(variant)
  }

  get dir(): string {
    return this.forkServer.dirOf('task-1')
  }

  get files(): string[] {
    return readdirSync(this.dir).toSorted()
  }

  hold(command: LaunchPlan['command'] = sh('echo ran >> ran'), more: Partial<LaunchPlan> = {}): void {
    this.forkServer.write(this.forkServer.request('task-1', command, 7, more, 'hold'))
  }

  say(word: 'release' | 'discard', launch = 7): void {
    this.forkServer.write(wordOnLaunch(launch, word))
  }

  /** The pid of the launcher, once it has made its child, which may still set itself up. */
  async isReady(): Promise<number> {
    const find = () => childrenOf(this.forkServer.pid).find((pid) => childrenOf(pid).length > 0)
    return (await until(find, (pid) => pid !== undefined))!
  }

  /** What was said of the task, once the fork server has done all that it was asked for before. */
  async said(marker: string): Promise<string[]> {
    this.forkServer.write(this.forkServer.request(marker, ['/bin/true'], 99))
    await this.forkServer.hears(`gone ${marker}`)
    return this.forkServer.said.split('\n').filter((line) => line.includes(' task-1'))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.forkServer[Symbol.asyncDispose]()
  }
}

function cases(variant: LauncherVariant) {
  test('runs its task once it is released, and says nothing before', async () => {
    await using held = new Held(variant)
    held.hold()
    await held.isReady()
    expect(await held.said('other')).toEqual([])
    expect([held.files, isLauncherAlive(held.dir), readRecord(held.dir)]).toEqual([
      ['outcome.new', 'stderr.log', 'stdout.log'],
      true,
      {},
    ])
    held.say('release', 8)
    held.say('release')
    held.say('discard') // too late
    expect(await held.forkServer.hears('gone task-1')).toEqual(['gone task-1 7 0'])
    expect(readFileSync(join(held.dir, 'ran'), 'utf8')).toBe('ran\n')
    expect(readRecord(held.dir).outcome).toMatchObject({ ending: { how: 'exited', exit_code: 0 }, reason: 'none' })
  })

  test('runs its task if it is released before it is ready', async () => {
    await using held = new Held(variant)
    await stopProcess(held.forkServer.pid)
    held.hold()
    held.say('release')
    process.kill(held.forkServer.pid, 'SIGCONT')
    expect(await held.forkServer.hears('gone task-1')).toEqual(['gone task-1 7 0'])
    expect(held.files).toContain('ran')
  })

  test.each(['ready', 'on its way'])('leaves nothing once it is discarded, %s', async (state) => {
    await using held = new Held(variant)
    if (state === 'on its way') await stopProcess(held.forkServer.pid)
    held.hold()
    const launcher = state === 'ready' ? await held.isReady() : undefined
    const [child] = launcher === undefined ? [] : childrenOf(launcher)
    held.say('discard')
    held.say('release') // too late
    process.kill(held.forkServer.pid, 'SIGCONT')
    expect(await held.forkServer.hears('gone task-1')).toEqual(['gone task-1 7 125'])
    expect([held.files, isLauncherAlive(held.dir)]).toEqual([['stderr.log', 'stdout.log'], false])
    if (child !== undefined) expect(await isAlive(child)).toBe(false)
    expect(await held.said('other')).toEqual(['gone task-1 7 125'])
  })

  test('is gone before its fork server is, when the service is gone', async () => {
    await using held = new Held(variant)
    held.hold()
    await held.isReady()
    held.forkServer.process.stdin.end()
    expect(await held.forkServer.process.exited).toBe(0)
    expect([held.files, isLauncherAlive(held.dir)]).toEqual([['stderr.log', 'stdout.log'], false])
    expect(await held.forkServer.complaints).toBe('')
  })

  test('ends when the fork server is killed', async () => {
    await using held = new Held(variant)
    held.hold()
    const launcher = await held.isReady()
    const [child] = childrenOf(launcher)
    held.forkServer.process.kill('SIGKILL')
    await Promise.all([gone(launcher), gone(child!)])
    expect([held.files, isLauncherAlive(held.dir)]).toEqual([['stderr.log', 'stdout.log'], false])
  })

  test('is not kept by the launchers beside it when the fork server is killed', async () => {
    await using held = new Held(variant)
    held.hold()
    const launcher = await held.isReady()
    held.forkServer.write(held.forkServer.request('beside', sh('exec sleep 600'), 8))
    await held.forkServer.hears('started beside')
    held.forkServer.process.kill('SIGKILL')
    await gone(launcher)
    expect(isLauncherAlive(held.forkServer.dirOf('beside'))).toBe(true)
  })

  test('is asked to end its task: that ends once it is released, without having run', async () => {
    await using held = new Held(variant)
    held.hold()
    await held.isReady()
    expect(requestKill(held.dir)).toBe(true)
    expect(await held.said('other')).toEqual([])
    held.say('release')
    await held.forkServer.hears('gone task-1')
    expect(held.files).not.toContain('ran')
    expect(readRecord(held.dir).outcome!.reason).toBe('kill')
  })

  test.skipIf(missingSandbox !== undefined)(
    `is asked to end its task in a sandbox: that does not wait for its grace period${noted(missingSandbox)}`,
    async () => {
      await using held = new Held(variant)
      const workspace = join(held.forkServer.dirOf('workspace'))
      mkdirSync(workspace)
      if (isRoot) chownSync(workspace, SANDBOX_UID, SANDBOX_UID)
      const uid = isRoot ? { uid: SANDBOX_UID } : {}
      const sandbox = { features: USUAL, masks: MASKS, workspace, ...uid }
      const hours = 10_000_000
      held.hold(undefined, { sandbox, workdir: workspace, grace_ms: hours, wall_time_ms: hours })
      const [init] = childrenOf(await held.isReady())
      await until(
        () => childrenOf(init!).length,
        (count) => count > 0,
      )
      expect(requestKill(held.dir)).toBe(true)
      held.say('release')
      await held.forkServer.hears('gone task-1')
      expect(readdirSync(workspace)).toEqual([])
      expect(readRecord(held.dir).outcome!.reason).toBe('kill')
    },
  )

  test('that was killed is told of once it is released', async () => {
    await using held = new Held(variant)
    held.hold()
    process.kill(await held.isReady(), 'SIGKILL')
    expect(await held.said('other')).toEqual([])
    held.say('release')
    expect(await held.forkServer.hears('gone task-1')).toEqual(['gone task-1 7 137 killed'])
    expect(held.files).not.toContain('ran')
  })

  const FAULTS = {
    'the lock is taken': {
      said: `failed task-1 lock ${EAGAIN}`,
      arrange: (dir: string) => {
        const lock = openSync(dir, 'r')
        expect(tryLock(lock)).toBe(true)
        return () => closeSync(lock)
      },
    },
    'the directory is gone': {
      said: `failed task-1 task_dir ${ENOENT}`,
      arrange: (dir: string) => {
        rmSync(dir, { recursive: true })
        return () => mkdirSync(dir)
      },
    },
    'a log is no file': {
      said: 'ended task-1',
      arrange: (dir: string) => {
        mkdirSync(join(dir, 'stdout.log'))
        return () => rmSync(join(dir, 'stdout.log'), { recursive: true })
      },
    },
  }
  test.each(Object.entries(FAULTS))(
    'says that it failed once it is released, and not if discarded: %s',
    async (_, fault) => {
      for (const word of ['release', 'discard'] as const) {
        await using held = new Held(variant)
        const request = held.forkServer.request('task-1', sh('echo ran >> ran'), 7, {}, 'hold')
        const restore = fault.arrange(held.dir)
        held.forkServer.write(request)
        expect(await held.said('other')).toEqual([])
        held.say(word)
        await held.forkServer.hears('gone task-1')
        restore()
        expect(await held.said('last')).toEqual([...(word === 'release' ? [fault.said] : []), 'gone task-1 7 125'])
        const left = held.files.filter((name) => !name.endsWith('.log'))
        expect(left).toEqual(word === 'release' && fault.said.startsWith('ended') ? ['outcome'] : [])
      }
    },
  )

  test('whose arguments cannot be meant is told of once it is released', async () => {
    await using held = new Held(variant)
    held.hold(sh('true'), { wall_time_ms: 0 })
    expect(await held.said('other')).toEqual([])
    held.say('release')
    expect(await held.forkServer.hears('gone task-1')).toEqual(['gone task-1 7 125'])
  })

  describe.skipIf(missing !== undefined)(`of a sandbox with cgroups${noted(missing)}`, () => {
    test.each(['release', 'discard', 'end'] as const)('leaves neither processes nor cgroups: %s', async (word) => {
      await using groups = testCgroups()
      await using held = new Held(variant)
      const workspace = held.dir
      const uid = isRoot ? { uid: SANDBOX_UID } : {}
      held.hold(['/bin/true'], {
        sandbox: { features: USUAL, masks: MASKS, workspace, ...uid },
        cgroup: groups.tasks.forTask('task-1')!,
        ...{ memory_max: 2 ** 28, pids_max: 16 },
      })
      const launcher = await held.isReady()
      expect(groups.tasks.taskIds()).toEqual(['task-1'])
      if (word === 'end') held.forkServer.process.stdin.end()
      else held.say(word)
      await gone(launcher)
      await until(
        () => isLauncherAlive(held.dir),
        (alive) => !alive,
      )
      expect(groups.tasks.taskIds()).toEqual([])
      expect(existsSync(join(held.dir, 'outcome'))).toBe(word === 'release')
      if (word === 'release') expect(readRecord(held.dir).outcome!.ending).toEqual({ how: 'exited', exit_code: 0 })
    })
  })
}

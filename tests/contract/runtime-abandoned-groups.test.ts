/**
 * Goal: the control groups of a service that was killed and never starts again are removed by the next start of another,
 * and those of a service that lives, or of a task that runs, never are.
 * Method: real services, which share the directory of the groups, as services of one machine do.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { namesBelow } from '../../runtime/host/cgroup-files.ts'
import { readRecords, removeEmptyCgroups, writeRecord } from '../../runtime/host/cgroup-record.ts'
import { isCgroupOf } from '../../runtime/host/task-cgroups.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { missingCgroups } from '../support/cgroups.ts'
import { endHungMount, missingHungMount, withHungMount } from '../support/hung-mount.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import type { ServiceOptions } from '../support/service.ts'
import { endProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const why = missingCgroups === undefined ? '' : ` (skipped: ${missingCgroups})`

/** Where the services put the groups of their tasks. */
const homeOf = async (runtime: Runtime) =>
  (await runtime.json<{ cgroup_root: string }>('/api/v1/runtime/config')).cgroup_root

const groupsOf = (home: string, id: string) => namesBelow(home).filter((name) => name === id || isCgroupOf(id, name))

/**
 * A service that is killed; its data directory stays, and so do its groups. What `prepare` makes is made before: once it is
 * killed, every service that starts on this machine may remove them.
 */
async function killed(dataDir: string, prepare = (_group: string) => {}) {
  const runtime = await startRuntime({ dataDir })
  const home = await homeOf(runtime)
  const id = serviceIdOf(dataDir)
  prepare(join(home, id))
  const made = groupsOf(home, id)
  await runtime.stop('SIGKILL')
  const remove = async () => {
    for (const name of groupsOf(home, id)) removeEmptyCgroups(join(home, name))
    await runtime.dispose()
  }
  return { id, home, made, [Symbol.asyncDispose]: remove }
}

/** A service whose start has looked at the groups of all others. */
async function startAndSweep(options: ServiceOptions = {}): Promise<Runtime> {
  const runtime = await startRuntime({ ...options, flags: ['--log-level', 'debug'] })
  await until(
    () => runtime.log.map(({ msg }) => msg),
    (messages) => messages.includes('control groups of other services checked'),
  )
  return runtime
}

/** Services of other tests look at the same groups: two that look at the same moment may each leave some to the other. */
const sweptAway = (home: string, id: string) =>
  until(
    async () => {
      await using other = await startAndSweep()
      expect(groupsOf(home, serviceIdOf(other.dataDir)).length).toBe(1)
      return groupsOf(home, id)
    },
    (groups) => groups.length === 0,
  )

describe.skipIf(missingCgroups !== undefined)(`groups of a service that was killed${why}`, () => {
  test.each(['is gone', 'is not locked', 'is another one now'])('go when its data directory %s', async (what) => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'x'.repeat(200), 'ü'.repeat(60), 'data')
    await using left = await killed(dataDir, (group) => {
      for (const name of ['.task', '~probe']) mkdirSync(`${group}${name}`)
    })
    expect(left.made.length).toBe(3)
    if (what === 'is gone') rmSync(dataDir, { recursive: true })
    else if (what === 'is another one now') {
      renameSync(dataDir, join(dir.path, 'moved'))
      mkdirSync(dataDir)
    }
    await sweptAway(left.home, left.id)
  })

  test('stay as long as a task runs in one, and its service finds them again', async () => {
    using dir = tempDir()
    await using _processes = endProcessesOf(dir.path)
    const [dataDir, go] = [join(dir.path, 'data'), join(dir.path, 'go')]
    await using first = await startRuntime({ dataDir })
    const id = await first.script(`echo; ${waitFor(go)}; echo done`, { limits: { pids_max: 64 } })
    await first.printed(id)
    await first.stop('SIGKILL')
    {
      await using other = await startAndSweep()
      const service = serviceIdOf(dataDir)
      const groups = groupsOf(await homeOf(other), service)
      expect(groups.toSorted()).toEqual([service, `${service}.${id}`])
    }
    await using again = await startRuntime({ dataDir })
    await Bun.write(go, '')
    expect(await again.ended(id)).toMatchObject({ status: 'success', stdout: '\ndone\n' })
  })

  test('of a service that lives stay, also when its data directory was moved away', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using runtime = await startRuntime({ dataDir })
    const [home, id] = [await homeOf(runtime), serviceIdOf(dataDir)]
    const [record] = readRecords(join(home, id))
    expect(record).toMatchObject({ data_dir: dataDir, process: { pid: runtime.process.pid } })
    for (const path of [dataDir, join(dir.path, 'moved')]) {
      if (path !== dataDir) renameSync(dataDir, path)
      await using _other = await startAndSweep()
      expect(groupsOf(home, id)).toEqual([id])
    }
    renameSync(join(dir.path, 'moved'), dataDir)
  })

  test('without a record stay: they may be those of another version', async () => {
    await using runtime = await startRuntime()
    const foreign = join(await homeOf(runtime), `1-${process.pid}`)
    mkdirSync(foreign)
    try {
      await using _other = await startAndSweep()
      expect(existsSync(foreign)).toBe(true)
    } finally {
      rmdirSync(foreign)
    }
  })

  test('go also with records of two runs of their service', async () => {
    using dir = tempDir()
    await using left = await killed(join(dir.path, 'data'), (group) => {
      const [record] = readRecords(group)
      const names = namesBelow(group)
      writeRecord(group, { ...record!, process: { ...record!.process!, start_time: 1 } })
      for (const name of names) mkdirSync(join(group, name), { recursive: true })
      expect(readRecords(group).length).toBe(2)
    })
    await sweptAway(left.home, left.id)
  })

  test('go also when the lock is a FIFO, which no writer has open', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    await using left = await killed(dataDir)
    rmSync(join(dataDir, 'runtime.lock'))
    expect(Bun.spawnSync(['mkfifo', join(dataDir, 'runtime.lock')]).exitCode).toBe(0)
    await sweptAway(left.home, left.id)
  })

  test.skipIf(missingHungMount !== undefined)(
    `stay when their file system does not answer, and the service goes on${missingHungMount === undefined ? '' : ` (skipped: ${missingHungMount})`}`,
    async () => {
      using dir = tempDir()
      const hung = join(dir.path, 'hung')
      mkdirSync(hung)
      await using home = await startRuntime()
      const group = join(await homeOf(home), `2-${process.pid}`)
      const holder = Bun.spawn([...withHungMount(hung), 'sleep', '600'])
      try {
        await until(
          () => readFileSync(`/proc/${holder.pid}/cmdline`, 'utf8'),
          (command) => command.startsWith('sleep'),
        )
        const mount_namespace = statSync(`/proc/${holder.pid}/ns/mnt`).ino.toString(36)
        const [own] = readRecords(join(await homeOf(home), serviceIdOf(home.dataDir)))
        const process_ = { ...own!.process!, start_time: 1 }
        mkdirSync(group)
        writeRecord(group, { ...own!, process: process_, mount_namespace, data_dir: join(hung, 'data') })
        await using other = await startAndSweep({ through: ['nsenter', '-t', String(holder.pid), '-m'] })
        expect((await other.runScript('echo on')).stdout).toBe('on\n')
        expect(other.log).toContainEqual(expect.objectContaining({ level: 'warn', groups: [group] }))
        expect(existsSync(group)).toBe(true)
        expect(await other.stop('SIGTERM')).toBe(0)
      } finally {
        endHungMount(holder.pid, hung)
        holder.kill('SIGKILL')
        await holder.exited
        removeEmptyCgroups(group)
      }
    },
  )

  test('a stop and a restart leave one record at most', async () => {
    using dir = tempDir()
    await using left = await killed(dir.path)
    const { home, id } = left
    {
      await using runtime = await startRuntime({ dataDir: dir.path })
      expect(readRecords(join(home, id)).length).toBe(1)
      await runtime.stop('SIGTERM')
    }
    expect(groupsOf(home, id)).toEqual([])
  })
})

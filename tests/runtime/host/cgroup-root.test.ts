/**
 * Goal: the directory of the tasks' groups is where it was asked for, in any way to say that, and nothing that was made
 * for it is left. Method: real groups below that of the tests.
 */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { namesBelow } from '../../../runtime/host/cgroup-files.ts'
import { leaveCgroups, TaskCgroups } from '../../../runtime/host/task-cgroups.ts'
import { TEST_CGROUP_ROOT } from '../../../scripts/left-cgroups.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'
import { testEnvironment } from '../../support/service.ts'
import { until } from '../../support/until.ts'

/** Attributes that exist where the controller works, in either version. */
const LIMITS = ['pids.max', 'memory.max', 'memory.limit_in_bytes']

const why = missingCgroups === undefined ? '' : ` (skipped: ${missingCgroups})`

test.skipIf(missingCgroups !== undefined)(`a directory of groups is what one of them is called${why}`, async () => {
  await using base = testCgroups()
  const [first] = Object.values(base.tasks.directories)
  const asked = join(first!, 'a/b')
  const groups = TaskCgroups.prepare({ root: asked, serviceId: 'other' })
  expect(groups.missing).toEqual([])
  expect(Object.values(groups.directories)).toContain(asked)
  leaveCgroups(groups)
  const left = Object.values(groups.directories).map((directory) => existsSync(dirname(directory)))
  expect(left).toEqual(left.map(() => false))
})

test.skipIf(missingCgroups !== undefined)(`the group of a service stays as long as those of its tasks${why}`, () => {
  const groups = TaskCgroups.prepare({ root: `${TEST_CGROUP_ROOT}-leave-${process.pid}`, serviceId: '1-2' })
  const directories = [...new Set(Object.values(groups.directories))]
  for (const directory of directories) mkdirSync(join(directory, '1-2.task'))
  leaveCgroups(groups)
  const left = directories.map((directory) => namesBelow(directory).toSorted())
  for (const directory of directories) rmdirSync(join(directory, '1-2.task'))
  leaveCgroups(groups)
  expect(left).toEqual(directories.map(() => ['1-2', '1-2.task']))
  expect(directories.map((directory) => existsSync(directory))).toEqual(directories.map(() => false))
})

test.skipIf(missingCgroups !== undefined)(`groups without a record limit all the same${why}`, () => {
  const fault = new Error('there is no room for the record')
  // Stands for a system that refuses more groups.
  const dataDir = Object.assign(Object('/data'), {
    toJSON: () => {
      throw fault
    },
  }) as string
  const root = `${TEST_CGROUP_ROOT}-record-${process.pid}`
  const groups = TaskCgroups.prepare({ root, serviceId: '1-2', dataDir })
  leaveCgroups(groups)
  expect(groups.missing).toEqual([])
  expect(groups.unrecorded[0]).toContain(fault.message)
})

test.skipIf(missingCgroups !== undefined)(`services may end while another one starts${why}`, async () => {
  const root = `${TEST_CGROUP_ROOT}-shared-${process.pid}`
  const first = TaskCgroups.prepare({ root, serviceId: 'first' })
  const directories = [...new Set(Object.values(first.directories))]
  // Removes the directories as often as it can, as services do when they end.
  const text = `const { rmdirSync } = require('node:fs')
    for (const directories = ${JSON.stringify(directories)}; ; )
      for (const directory of directories) try { rmdirSync(directory) } catch {}`
  await using _leaving = Bun.spawn([process.execPath, '-e', text], {
    env: testEnvironment(),
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  leaveCgroups(first)
  for (const directory of directories) mkdirSync(directory)
  await until(() => directories.some((directory) => existsSync(directory)), false)
  for (let i = 0; i < 300; i++) {
    const groups = TaskCgroups.prepare({ root, serviceId: 'second' })
    expect({ i, missing: groups.missing }).toEqual({ i, missing: [] })
    const paths = [...new Set(Object.values(groups.directories))].map((directory) => join(directory, 'second.task'))
    for (const path of paths) mkdirSync(path)
    const limits = paths.flatMap((path) => LIMITS.filter((name) => existsSync(join(path, name))))
    for (const path of paths) rmdirSync(path)
    leaveCgroups(groups)
    expect({ i, limits: limits.length }).toEqual({ i, limits: 2 })
  }
})

test.skipIf(missingCgroups !== undefined)(`what others have made stays${why}`, () => {
  const base = TaskCgroups.prepare({ root: `${TEST_CGROUP_ROOT}-root-${process.pid}`, serviceId: 'one' })
  const directories = [...new Set(Object.values(base.directories))]
  for (const directory of directories) mkdirSync(join(directory, 'theirs'))
  const groups = TaskCgroups.prepare({ root: join(directories[0]!, 'theirs/ours'), serviceId: 'two' })
  leaveCgroups(groups)
  for (const directory of directories) {
    expect(existsSync(join(directory, 'theirs/ours'))).toBe(false)
    rmdirSync(join(directory, 'theirs'))
  }
  leaveCgroups(base)
  expect(directories.map((directory) => existsSync(directory))).toEqual(directories.map(() => false))
})

/**
 * Goal: the directory of the tasks' groups is where it was asked for, in any way to say that, and nothing that was made
 * for it is left. Method: real groups below that of the tests.
 */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, rmdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { leaveCgroups, TaskCgroups } from '../../../runtime/launcher/cgroup.ts'
import { TEST_CGROUP_ROOT } from '../../../scripts/left-groups.ts'
import { missingCgroups, testCgroups } from '../../support/cgroups.ts'

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

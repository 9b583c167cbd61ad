/** `bun run test` reports the cgroup of a killed service as left behind, and no other cgroup. */
import { expect, test } from 'bun:test'
import { basename } from 'node:path'
import { allCgroups, inEvery, ownerlessCgroups, without } from '../../scripts/left-cgroups.ts'
import { cgroupRemover, homesOfServices } from '../../scripts/service-cgroups.ts'
import { serviceIdOf } from '../../shared/process/service-id.ts'
import { missingCgroups, testCgroups } from '../support/cgroups.ts'
import { startRuntime } from '../support/runtime.ts'
import { until } from '../support/until.ts'

const missing = missingCgroups === undefined ? '' : ` (skipped: ${missingCgroups})`
const named = (groups: Iterable<string>, name: string) => [...groups].filter((group) => basename(group) === name)

test.each([
  ['none is used', [], ['/t', '/t/1-1', '/t/1-1.a', '/t/1-11', '/t2']],
  ['one of a service', ['/t/1-1'], ['/t/1-1.a', '/t/1-11', '/t2']],
  ['the top', ['/t'], ['/t2']],
  ['one that is not there', ['/t3'], ['/t', '/t/1-1', '/t/1-1.a', '/t/1-11', '/t2']],
])('what is above and below a used group is used: %s', (_, used, expected) => {
  expect([...without(['/t', '/t/1-1', '/t/1-1.a', '/t/1-11', '/t2'], used)]).toEqual(expected)
})

test.each([
  ['one hierarchy', [['/a']], ['/a/t', '/a/t/1'], ['/a/t', '/a/t/1']],
  ['one with two places', [['/a/own', '/a']], ['/a/t/1', '/a/own/t/2'], ['/a/t/1', '/a/own/t/2']],
  [
    'another session in one',
    [['/pids'], ['/memory/us']],
    ['/pids/t/1', '/pids/t/2', '/memory/us/t/2'],
    ['/pids/t/2', '/memory/us/t/2'],
  ],
  ['nothing in the other', [['/pids'], ['/memory/us']], ['/pids/t/1'], []],
])('ours are in every hierarchy: %s', (_, hierarchies, groups, expected) => {
  expect([...inEvery(hierarchies, new Set(groups))]).toEqual(expected)
})

test.skipIf(missingCgroups !== undefined)(
  `the group of a service is nobody's once it was killed, and can be removed${missing}`,
  async () => {
    await using runtime = await startRuntime()
    const id = serviceIdOf(runtime.dataDir)
    expect(named(allCgroups(), id)).toHaveLength(homesOfServices().length)
    expect(named(ownerlessCgroups(), id)).toEqual([])
    await runtime.stop('SIGKILL')
    // Its fork server has the lock, too, and ends a little later.
    await until(() => named(ownerlessCgroups(), id).length, homesOfServices().length)
    cgroupRemover(runtime.dataDir)()
    expect(named(allCgroups(), id)).toEqual([])
  },
)

test.skipIf(missingCgroups !== undefined)(`a service that ends in order leaves none${missing}`, async () => {
  await using runtime = await startRuntime()
  await runtime.stop()
  expect(named(allCgroups(), serviceIdOf(runtime.dataDir))).toEqual([])
})

test.skipIf(missingCgroups !== undefined)(`groups of a test are its own while it runs${missing}`, async () => {
  const id = `left-${crypto.randomUUID()}`
  await using _ = testCgroups(id)
  expect(named(allCgroups(), id)).toHaveLength(homesOfServices().length)
  expect(named(ownerlessCgroups(), id)).toEqual([])
})

/**
 * Control groups of version 2, which few machines of ours have to themselves: the tests that need groups run in a throw-away
 * kernel, once as root and once as a user to whom a part of the tree was delegated. One boot each.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { builtProgram } from '../../scripts/build.ts'
import { inVm, missingVm, VM_PATIENCE_MS } from '../support/vm.ts'

setDefaultTimeout(VM_PATIENCE_MS)

/** Those that need groups; the others say the same here as there. */
const SUITES = [
  'tests/runtime/host/cgroup-root.test.ts',
  'tests/runtime/launch/cgroup.test.ts',
  'tests/contract/runtime-sandbox.test.ts',
  'tests/contract/runtime-sandbox-pids.test.ts',
  'tests/contract/runtime-abandoned-groups.test.ts',
  'tests/scripts/left-cgroups.test.ts',
]

/** Nothing may be skipped there, but what a kernel of this kind cannot run, and for a user what only root can arrange. */
const MUST = { TASKMILL_MUST_CGROUP: '1', TASKMILL_MUST_SANDBOX: '1' }
const MAY_SKIP =
  /\(skipped: the sanitizers do not run here\)|root without its rights|for a service of root|only root can mount|there is no \/dev\/fuse|sandboxes of root have users of their own/

/** Milliseconds of one test: a process takes twenty times as long to start. The suites must not set a limit of their own. */
const TEST_LIMIT_MS = 180_000

const skipped = missingVm === undefined ? '' : ` (skipped: ${missingVm})`

describe.skipIf(missingVm !== undefined)(`the tests of control groups, with version 2${skipped}`, () => {
  test.each([
    ['as root', false],
    ['as a user to whom some are delegated', true],
  ])('%s', async (_, isUser) => {
    await builtProgram('taskmill-runtime') // there is nobody in there who could write it
    const command = [process.execPath, 'test', `--timeout=${TEST_LIMIT_MS}`, ...SUITES]
    const { stdout, stderr, exitCode } = await inVm(command, { isUser, env: MUST })
    const lines = `${stdout}\n${stderr}`.split('\n')
    expect(lines.filter((line) => line.startsWith('(fail)'))).toEqual([])
    expect(lines.filter((line) => line.startsWith('(skip)') && !MAY_SKIP.test(line))).toEqual([])
    expect(lines.filter((line) => line.startsWith('(pass)')).length).toBeGreaterThan(30)
    expect(stderr).toMatch(/^ 0 fail$/m)
    expect(stderr).toMatch(/^Ran \d+ tests across \d+ files?\./m)
    expect(exitCode).toBe(0)
  })
})

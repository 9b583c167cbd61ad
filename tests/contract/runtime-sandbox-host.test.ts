/**
 * The profile linux_sandbox in odd surroundings: groups of the service, places below /dev and /proc, roots that cannot be
 * used, tasks that get away from a launcher. Source: docs/sandbox.md; contract 2.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RuntimeCapabilities } from '../../shared/contract/runtime-info.ts'
import { asOrdinaryUser, becoming, openProgram } from '../support/ordinary-user.ts'
import { startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

setDefaultTimeout(60_000)

const isRoot = process.getuid?.() === 0
const sandbox = { profile: 'linux_sandbox' } as const
const STRICT = { policy: { capability_mode: 'strict' } } as const
const why = missingSandbox === undefined ? '' : ` (skipped: ${missingSandbox})`
const whyUser = isRoot ? why : ' (skipped: only root can become another user)'

describe.skipIf(missingSandbox !== undefined || !isRoot)(`a service in groups besides its own${whyUser}`, () => {
  const GROUPS = [61_301, 61_302]

  test('warns in each plan of a sandbox that its tasks keep them, and its manifest has the remedy', async () => {
    using dir = tempDir()
    chmodSync(dir.path, 0o755)
    const file = join(dir.path, 'file')
    writeFileSync(file, 'of the group\n', { mode: 0o640 })
    chownSync(file, 0, GROUPS[0]!)
    await using runtime = await startRuntime({
      ...(await asOrdinaryUser(GROUPS)),
      flags: ['--sandbox-expose', dir.path],
    })
    const task = await runtime.runScript(`cat ${file}`, { sandbox, ...STRICT })
    expect(task).toMatchObject({ status: 'success', stdout: 'of the group\n', execution_plan: { degraded: false } })
    const { warnings } = await runtime.json<RuntimeCapabilities>('/api/v1/runtime/capabilities')
    for (const texts of [task.execution_plan.capability_warnings, warnings])
      expect(texts).toContainEqual(expect.stringMatching(/its groups 61301, 61302 .*setpriv --clear-groups/))
    expect((await runtime.runScript('true')).execution_plan.capability_warnings).toEqual([])
  })

  test('is told by doctor', async () => {
    const command = [...becoming(GROUPS), await openProgram(), 'doctor']
    const { stdout } = Bun.spawnSync(command, { cwd: '/', env: testEnvironment() })
    expect(stdout.toString()).toMatch(
      /^MISSING {2}linux_sandbox without groups of the service: .*61301, 61302.*\n {9}Start/m,
    )
  })

  test('without them warns of nothing', async () => {
    await using runtime = await startRuntime(await asOrdinaryUser())
    const { execution_plan } = await runtime.runScript('true', { sandbox, ...STRICT })
    expect(execution_plan.capability_warnings).toEqual([])
  })
})

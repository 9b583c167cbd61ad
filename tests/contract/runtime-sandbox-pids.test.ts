/**
 * A task of linux_sandbox that sees the processes of the host has a control group, if only to be ended by it.
 * Source: docs/sandbox.md, Its end.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { missingCgroups } from '../support/cgroups.ts'
import { startRuntime } from '../support/runtime.ts'
import { missingSandbox } from '../support/sandboxes.ts'
import { endProcessesOf, forkServerOf, noProcessesOf, processesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const sandbox = { profile: 'linux_sandbox', namespaces: { pid: false } } as const
const missing = missingSandbox ?? missingCgroups
const why = missing === undefined ? '' : ` (skipped: ${missing})`

describe.skipIf(missing !== undefined)(`a task that sees the processes of the host${why}`, () => {
  test('leaves nothing when its launcher and the fork server are killed, however far it went', async () => {
    using marks = tempDir()
    const stay = join(marks.path, 'stay')
    await using _ = endProcessesOf(stay)
    await using runtime = await startRuntime()
    // Another session, no mark, no parent, nothing open: by no name of ours to be found.
    const away = `cd /; setsid env -i sh -c 'while :; do sleep 0.2; done # ${stay}' < /dev/null > /dev/null 2>&1 &`
    const id = await runtime.script(`${away} echo ready; sleep 600`, {
      sandbox,
      policy: { capability_mode: 'strict' },
    })
    const { shim_pid } = await runtime.printed(id)
    await until(
      () => processesOf(stay),
      (pids) => pids.length > 0,
    )
    const forkServer = await forkServerOf(runtime.process.pid)
    process.kill(forkServer, 'SIGKILL')
    process.kill(shim_pid!, 'SIGKILL')
    expect(await runtime.ended(id)).toMatchObject({ status: 'failed', error: { code: 'internal' } })
    await noProcessesOf(stay)
  })
})

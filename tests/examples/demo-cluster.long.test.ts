/** The demo of a cluster as people start it, and interrupted. It leaves no process and no file. Source: docs/cluster.md. */
import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { testEnvironment } from '../support/service.ts'
import { noProcessesOf } from '../support/task-processes.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const missing = mustPostgres()

const DEMO = join(dirname(dirname(import.meta.dir)), 'examples/demo-cluster/main.ts')

/** Milliseconds for one run on a busy machine; it takes about 20 s. */
const RUN_MS = 180_000

/** Runs the demo, and interrupts it once it has said `interruptAt`. */
async function run(interruptAt?: RegExp) {
  await builtProgram('taskmill-control')
  await builtProgram('taskmill-runtime')
  using dir = tempDir()
  chmodSync(dir.path, 0o711) // for the user of the database
  const temporary = join(dir.path, 'temporary')
  mkdirSync(temporary)
  chmodSync(temporary, 0o711)
  const demo = Bun.spawn([process.execPath, DEMO], {
    ...{ cwd: dir.path, env: testEnvironment({ TMPDIR: temporary, HOME: dir.path }) },
    ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  let output = ''
  const decoder = new TextDecoder()
  const reading = (async () => {
    for await (const chunk of demo.stdout) output += decoder.decode(chunk, { stream: true })
  })()
  const faults = new Response(demo.stderr).text()
  if (interruptAt !== undefined) {
    const told = () => demo.exitCode !== null || interruptAt.test(output)
    await until(told, (isTold) => isTold, { patienceMs: RUN_MS })
    demo.kill('SIGINT')
  }
  const exitCode = await demo.exited
  await reading
  await noProcessesOf(temporary)
  return { exitCode, output, faults: await faults, left: readdirSync(temporary) }
}

describe.skipIf(missing !== undefined)(
  `the demo of a cluster${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    test(
      'kills a replica and the primary, and loses nothing',
      async () => {
        const { exitCode, output, faults, left } = await run()
        expect([exitCode, faults, left]).toEqual([0, '', []])
        expect(output).toMatch(/kill -9 of the replica http:\S+: \d+ tasks have ended, the others run or wait\./)
        expect(output).toMatch(/Another replica goes on with the graph, [\d.]+s after the kill\./)
        expect(output).toMatch(/kill -9 of the primary and all of its processes: \d+ tasks have ended\./)
        expect(output).toMatch(/200 of 200 tasks succeeded\.\n.* 200 attempts started, none of them twice\.\n/)
        expect(output).toEndWith('Nothing was lost. Everything is stopped.\n')
      },
      RUN_MS,
    )

    test(
      'stops everything when it is interrupted',
      async () => {
        const { exitCode, output, left } = await run(/kill -9 of the replica/)
        expect([exitCode, left]).toEqual([130, []])
        expect(output).toEndWith('Interrupted. Everything is stopped.\n')
      },
      RUN_MS,
    )
  },
)

/** The protocol's own conformance scenarios against the built service: those that need no tools of the suite's making. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const PROGRAM = join(import.meta.dir, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')

test.each([
  ['server-initialize', 1],
  ['ping', 1],
  ['tools-list', 1],
  ['server-sse-multiple-streams', 0],
  ['dns-rebinding-protection', 2],
])('%s passes', async (scenario, checks) => {
  await using control = await startControl()
  using dir = tempDir()
  const command = [process.execPath, '--bun', PROGRAM, 'server', '--url', `${control.url}/mcp`, '--scenario', scenario]
  const run = Bun.spawn(command, {
    cwd: dir.path,
    env: testEnvironment(),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  expect(await run.exited, stdout + stderr).toBe(0)
  expect(stdout).toContain(`Passed: ${checks}/${checks}, 0 failed`)
})

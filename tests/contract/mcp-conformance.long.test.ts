/** The protocol's own conformance scenarios: those that need no tools, logins or questions of the suite's making. */
import { describe, expect, test } from 'bun:test'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const PROGRAM = join(import.meta.dir, '../../node_modules/@modelcontextprotocol/conformance/dist/index.js')
const CLIENT = join(import.meta.dir, '../fixtures/mcp-conformance-client.ts')

async function conformance(args: readonly string[]): Promise<{ exitCode: number; report: string }> {
  using dir = tempDir()
  const run = Bun.spawn([process.execPath, '--bun', PROGRAM, ...args], {
    cwd: dir.path,
    env: testEnvironment({ TMPDIR: tmpdir() }),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  return { exitCode: await run.exited, report: stdout + stderr }
}

describe('POST /mcp as the server', () => {
  test.each([
    ['server-initialize', 1],
    ['ping', 1],
    ['tools-list', 1],
    ['server-sse-multiple-streams', 0],
    ['dns-rebinding-protection', 2],
  ])('%s passes', async (scenario, checks) => {
    await using control = await startControl()
    const { exitCode, report } = await conformance(['server', '--url', `${control.url}/mcp`, '--scenario', scenario])
    expect(exitCode, report).toBe(0)
    expect(report).toContain(`Passed: ${checks}/${checks}, 0 failed`)
  })
})

describe('tasks of the type mcp as the client', () => {
  test.each([
    ['initialize', 1],
    ['tools_call', 1],
    ['sse-retry', 3],
  ])('%s passes', async (scenario, checks) => {
    const command = `${process.execPath} ${CLIENT}`
    // One of them measures a pause, with 200 ms to spare: a busy machine may need several tries.
    await until(
      () => conformance(['client', '--command', command, '--scenario', scenario, '--timeout', '60000']),
      ({ exitCode, report }) => exitCode === 0 && report.includes(`Passed: ${checks}/${checks}, 0 failed`),
    )
  })
})

/**
 * Goal: a program that starts the client and never reads its standard error gets the answer all the same. Method: standard
 * error is a pipe that the test holds open; the task prints more than it takes.
 */
import { expect, test } from 'bun:test'
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { $ } from 'bun'
import { builtProgram as binary } from '../../scripts/build.ts'
import { startControl } from '../support/control.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'

const LINES = 40_000

test('run ends and prints its answer although nobody reads standard error', async () => {
  await using control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
  using dir = tempDir()
  const pipe = join(dir.path, 'pipe')
  await $`mkfifo ${pipe}`
  const reader = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
  try {
    const script = `i=0; while [ $i -lt ${LINES} ]; do echo line $i; i=$((i+1)); done`
    const graph = { scope: 'graph', tasks: [{ id: 'talk', type: 'shell', params: { script, runner: 'sh' } }] }
    const child = Bun.spawn([await binary('taskmill'), 'run', '-'], {
      env: testEnvironment({ SERVICE_URL: control.url, XDG_STATE_HOME: '/nonexistent' }),
      stdin: new TextEncoder().encode(JSON.stringify(graph)),
      stdout: 'pipe',
      stderr: openSync(pipe, constants.O_WRONLY),
    })
    const answer = (await new Response(child.stdout).json()) as { ok: boolean; data: { state: string } }
    expect([await child.exited, answer.ok, answer.data.state]).toEqual([0, true, 'success'])
    const bytes = Buffer.alloc(1024 * 1024)
    const shown = bytes.subarray(0, readSync(reader, bytes)).toString()
    expect(shown).toContain('line 0\n')
    expect(shown).not.toContain(`line ${LINES - 1}\n`)
  } finally {
    closeSync(reader)
  }
}, 60_000)

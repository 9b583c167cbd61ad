/** `taskmill-runtime doctor`: what this host can enforce, each line with its remedy; it needs no service and leaves nothing. */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { startRuntime } from '../support/runtime.ts'
import { runRuntime } from '../support/runtime-command.ts'
import { tempDir } from '../support/temp.ts'

const lines = (text: string) => text.trimEnd().split('\n')

describe('doctor', () => {
  test('names each capability as ok or MISSING, with a reason and a remedy for what is missing', async () => {
    const { stdout, stderr, exitCode } = await runRuntime(['doctor'])
    expect(stderr).toBe('')
    expect(stdout).toContain('ok       sandbox.profile=process\n')
    for (const [i, line] of lines(stdout).entries()) {
      if (!line.startsWith('MISSING')) continue
      expect(line).toMatch(/^MISSING {2}\S.*: \S/)
      expect(lines(stdout)[i + 1]).toMatch(/^ {9}[A-Z].*\.$/)
    }
    expect(exitCode).toBe(stdout.includes('MISSING') ? 1 : 0)
  })

  test('says the same as the manifest of a service', async () => {
    await using runtime = await startRuntime()
    const { resources } = await runtime.json<{ resources: Record<string, unknown> }>('/api/v1/runtime/capabilities')
    const { stdout } = await runRuntime(['doctor'])
    expect(stdout.includes('ok       limits.pids_max')).toBe(resources.pids_limit as boolean)
    expect(stdout.includes('ok       limits.cpu_time_sec')).toBe(resources.rlimit_cpu as boolean)
  })

  test('takes the flags of serve that matter to it', async () => {
    const { stdout, exitCode } = await runRuntime(['doctor', '--disable-cgroup', '--capacity-pids', '77'])
    expect(stdout).toContain('MISSING  limits.pids_max: --disable-cgroup is set\n')
    expect(stdout).toContain('capacity: 77 processes (--capacity-pids)\n')
    expect(exitCode).toBe(1)
  })

  test('refuses what it does not know', async () => {
    expect(await runRuntime(['doctor', '--nonsense'])).toMatchObject({ exitCode: 2 })
    expect(await runRuntime(['doctor', 'me'])).toMatchObject({ exitCode: 2 })
  })

  test.each([[['doctor']], [['doctor', '--escape']]])(
    'says where it could not make a directory: %p',
    async (command) => {
      const { exitCode, stdout, stderr } = await runRuntime(command, { env: { TMPDIR: '/no/such/place' } })
      expect([exitCode, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^taskmill-runtime: cannot make a temporary directory in \/no\/such\/place: .*TMPDIR.*\n$/)
    },
  )

  test('leaves nothing behind', async () => {
    using dir = tempDir()
    await runRuntime(['doctor'], { cwd: dir.path, env: { TMPDIR: dir.path } })
    expect(readdirSync(dir.path)).toEqual([])
  })
})

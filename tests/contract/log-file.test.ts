/** `--log-file` and `--max-log-bytes` of both services, against the built executables. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import { freePort } from '../support/free-port.ts'
import { testEnvironment } from '../support/service.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const MAX_LOG_BYTES = 64 * 1024

const linesOf = (path: string): Record<string, unknown>[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))

describe.each([
  ['taskmill-control', 'control', ['--addr'], '/tasks'],
  ['taskmill-runtime', 'runtime', ['serve', '--listen-addr'], '/api/v1/tasks'],
] as const)('%s', (program, service, address, path) => {
  test('writes its log there, up to the end, and never more than two full files', async () => {
    using dir = tempDir()
    const port = await freePort()
    const flags = ['--log-file', 'service.log', '--max-log-bytes', String(MAX_LOG_BYTES), '--log-level', 'debug']
    const args = [...address, `127.0.0.1:${port}`, '--data-dir', 'data', ...flags]
    const child = Bun.spawn([await builtProgram(program), ...args], {
      ...{ cwd: dir.path, env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    })
    const printed = Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    try {
      const log = join(dir.path, 'service.log')
      const call = (query = '') => fetch(`http://127.0.0.1:${port}${path}${query}`)
      await until(
        () =>
          call().then(
            ({ ok }) => ok,
            () => false,
          ),
        (isOk) => isOk,
      )
      // The first answer may come before the line is written.
      const listening = await until(() => linesOf(log).find(({ msg }) => msg === 'listening'))
      expect(listening).toMatchObject({ service, pid: child.pid })
      await until(
        async () => {
          // A refused request is logged, with what is wrong with it.
          await Promise.all(Array.from({ length: 20 }, () => call(`?${'x'.repeat(500)}=1`)))
          // Between the rename and the new file there is none.
          expect(statSync(log, { throwIfNoEntry: false })?.size ?? 0).toBeLessThanOrEqual(MAX_LOG_BYTES)
          return existsSync(`${log}.1`)
        },
        (isFull) => isFull,
      )
      child.kill('SIGTERM')
      expect(await child.exited).toBe(0)
      expect(statSync(`${log}.1`).size).toBeLessThanOrEqual(MAX_LOG_BYTES)
      expect(linesOf(`${log}.1`).length + linesOf(log).length).toBeGreaterThan(50)
      // Lines on requests that were answered just before may follow.
      const last = linesOf(log).map(({ msg }) => msg)
      expect(last.slice(last.indexOf('stopping'))).toContain('stopped')
      expect(await printed).toEqual(['', ''])
    } finally {
      child.kill('SIGKILL')
      await child.exited
    }
  })

  test('refuses a file that it cannot open, and makes no data directory', async () => {
    using dir = tempDir()
    const args = [...address, '127.0.0.1:0', '--data-dir', 'data', '--log-file', 'missing/service.log']
    const child = Bun.spawn([await builtProgram(program), ...args], {
      ...{ cwd: dir.path, env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
    })
    const stderr = await new Response(child.stderr).text()
    expect(await child.exited).toBe(2)
    expect(stderr).toMatch(
      new RegExp(
        `^${program}: cannot open the log file \\S+/missing/service.log: .*\\(choose another with --log-file\\)\\n$`,
      ),
    )
    expect(existsSync(join(dir.path, 'data'))).toBe(false)
  })
})

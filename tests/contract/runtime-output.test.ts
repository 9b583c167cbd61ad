/**
 * What a task prints: inline up to a limit, in full on disk, ended past the hard cap.
 * Source: spec, ResourceLimits and TaskStatusResponse; contract 0 (`--max-output-bytes`), 2 and 5.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { type Runtime, startRuntime } from '../support/runtime.ts'

const MEBIBYTE = 1024 * 1024

let runtime: Runtime
beforeAll(async () => {
  runtime = await startRuntime({ flags: ['--max-output-bytes', String(8 * MEBIBYTE)] })
})
afterAll(() => runtime.dispose())

describe('stdout and stderr of a status', () => {
  test('are apart, and whole where they fit', async () => {
    const task = await runtime.runScript('echo one; echo two >&2; echo three')
    expect(task).toMatchObject({
      ...{ stdout: 'one\nthree\n', stderr: 'two\n' },
      ...{ stdout_truncated: false, stderr_truncated: false },
    })
  })

  test('have all that was printed, a byte order mark too', async () => {
    const task = await runtime.runScript("printf '\\357\\273\\277x'; printf '\\357\\273\\277' >&2")
    expect([task.stdout, task.stderr]).toEqual(['\uFEFFx', '\uFEFF'])
  })

  test.each([
    [9, '123456789', true],
    [10, '1234567890', false],
    [11, '1234567890', false],
    [1, '1', true],
  ])('are the first N bytes: %d', async (limit, text, isTruncated) => {
    const limits = { stdout_max_bytes: limit, stderr_max_bytes: 4 }
    const task = await runtime.runScript('printf 1234567890; printf 1234567890 >&2', { limits })
    expect([task.stdout, task.stdout_truncated]).toEqual([text, isTruncated])
    expect([task.stderr, task.stderr_truncated]).toEqual(['1234', true])
    expect(readFileSync(task.artifacts.stdout_path, 'utf8')).toBe('1234567890')
    expect(readFileSync(task.artifacts.stderr_path, 'utf8')).toBe('1234567890')
  })

  test('are 4194304 bytes each by default, and the whole output is on disk', async () => {
    const bytes = 4_194_304
    const task = await runtime.runScript(
      `head -c ${bytes} /dev/zero | tr '\\0' o; printf x; head -c ${bytes} /dev/zero | tr '\\0' e >&2`,
    )
    expect([task.status, task.stdout.length, task.stdout_truncated]).toEqual(['success', bytes, true])
    expect([task.stderr.length, task.stderr_truncated]).toEqual([bytes, false])
    expect(task.stdout === 'o'.repeat(bytes)).toBe(true)
    expect(statSync(task.artifacts.stdout_path).size).toBe(bytes + 1)
    expect(statSync(task.artifacts.stderr_path).size).toBe(bytes)
  })

  test('hold control characters, NUL and all, and what is no UTF-8 breaks nothing', async () => {
    const task = await runtime.runScript(`printf 'a\\000b\\033[1m\\001"\\\\\\177\\r\\n'; printf 'x\\377\\376y' >&2`)
    expect(task.stdout).toBe('a\u0000b\u001b[1m\u0001"\\\u007f\r\n')
    expect(task.stderr).toMatch(/^x\ufffd+y$/)
    expect([...readFileSync(task.artifacts.stderr_path)]).toEqual([0x78, 0xff, 0xfe, 0x79])
  })

  test('is cut while the task runs, too', async () => {
    const id = await runtime.script('printf 123456; sleep 600', { limits: { stdout_max_bytes: 3 } })
    const task = await runtime.printed(id, (stdout) => stdout.length === 3)
    expect(task).toMatchObject({ status: 'running', stdout: '123', stdout_truncated: true })
  })
})

describe('past --max-output-bytes a task is ended with resource_limit_exceeded', () => {
  test('one that prints more', async () => {
    const task = await runtime.runScript('yes', { limits: { stdout_max_bytes: 10 } })
    expect(task).toMatchObject({ status: 'failed', error: { code: 'resource_limit_exceeded' } })
    expect(statSync(task.artifacts.stdout_path).size).toBeGreaterThan(8 * MEBIBYTE)
    expect((await runtime.eventTypes(task.task_id)).at(-1)).toBe('failed')
  })

  test('not one that prints exactly as much on both, nor one whose own files are larger', async () => {
    const bytes = 8 * MEBIBYTE
    const task = await runtime.runScript(
      `head -c ${bytes} /dev/zero; head -c ${bytes} /dev/zero >&2; head -c ${3 * bytes} /dev/zero > file`,
    )
    expect(task).toMatchObject({ status: 'success', exit_code: 0, stdout_truncated: true })
    expect(statSync(task.artifacts.stdout_path).size).toBe(bytes)
  })
})

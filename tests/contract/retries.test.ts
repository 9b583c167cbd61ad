/** Goal: `retry_on` and `backoff` decide which failures are retried and when, also after restarts; bad values are refused. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ErrorResponse } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const open = { SERVICE_SHELL_POLICY: 'open' }
const shell = (script: string, more: object) => ({ type: 'shell', params: { script }, ...more })

test('only failures with one of the codes are followed by another attempt', async () => {
  await using control = await startControl({ env: open })
  const backoff = { initial_ms: 1, factor: 1 }
  const other = await control.run(shell('exit 3', { retry: 5, retry_on: ['timeout'], backoff }))
  const error = 'command failed: exit status 3'
  expect(other).toMatchObject({ status: 'failed', attempt: 1, error, retry_on: ['timeout'], backoff })
  const same = await control.run(shell('exit 3', { retry: 2, retry_on: ['timeout', 'exit_nonzero'], backoff }))
  expect(same).toMatchObject({ status: 'failed', attempt: 3, error: `task failed after all retries: ${error}` })
  const mixed = shell('echo >> tries; test $(wc -l < tries) -gt 1 || sleep 300; exit 3', {
    ...{ retry: 5, retry_on: ['timeout'], backoff, timeout: 1_000 },
  })
  const last = await control.run(mixed)
  expect(last).toMatchObject({ status: 'failed', error })
  // On a busy machine the second one, too, may not end in time.
  expect(last.attempt).toBeWithin(2, 6)
})

test('a task waits as long as it says, and tells until when, also after a kill of the service', async () => {
  using dir = tempDir()
  const options = { dataDir: join(dir.path, 'data'), env: open }
  const file = join(dir.path, 'tries')
  const rules = {
    retry: 9,
    retry_on: ['exit_nonzero'],
    backoff: { initial_ms: 3_600_000, max_ms: 7_200_000, jitter: 0.5 },
  }
  const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0)
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    await using control = await startControl(options)
    if (signal === 'SIGKILL')
      await control.submit([{ id: 'a', ...shell(`echo >> ${file}; test -e ${file}.go`, rules) }])
    const task = await until(
      () => control.get('a'),
      ({ waiting }) => waiting?.reason === 'backoff',
    )
    expect(task).toMatchObject(rules)
    const waitMs = Date.parse(task.waiting!.until!) - Date.parse(task.attempts!.at(-1)!.finished_at!)
    const wholeMs = signal === 'SIGKILL' ? 3_600_000 : 7_200_000
    expect(waitMs).toBeWithin(wholeMs / 2, wholeMs + 1)
    expect(await control.get('a')).toMatchObject({ waiting: { until: task.waiting!.until! } })
    expect(lines()).toBe(signal === 'SIGKILL' ? 1 : 2)
    await control.stop(signal)
  }
  writeFileSync(`${file}.go`, '')
  await using control = await startControl(options)
  expect(await control.ended('a')).toMatchObject({ status: 'success', ...rules })
})

describe('a graph is refused for', () => {
  let control: Control
  beforeAll(async () => {
    control = await startControl()
  })
  afterAll(() => control.dispose())

  const limits = 'object of initial_ms and max_ms (integers from 0 to 86400000), factor (1 to 100) and jitter (0 to 1)'
  test.each<[string, object, string]>([
    ['an unknown code', { retry_on: ['exit'] }, 'retry_on: expected array of error codes (unknown, invalid_input, '],
    ['codes that are no list', { retry_on: 'timeout' }, 'retry_on: expected array of error codes ('],
    ['a list of waits', { backoff: [100] }, `backoff: expected ${limits}`],
    ['a negative wait', { backoff: { initial_ms: -1 } }, `backoff: expected ${limits}`],
    ['a wait that is too long', { backoff: { max_ms: 86_400_001 } }, `backoff: expected ${limits}`],
    ['a factor below 1', { backoff: { factor: 0.5 } }, `backoff: expected ${limits}`],
    ['a jitter above 1', { backoff: { jitter: 1.1 } }, `backoff: expected ${limits}`],
    ['an unknown field that nothing is like', { backoff: { zzz: 5 } }, 'backoff: unknown field "zzz"'],
    ['an unknown field', { backoff: { initial: 5 } }, 'backoff: unknown field "initial" (did you mean "initial_ms"?)'],
  ])('%s', async (_, more, error) => {
    const response = await control.post({ tasks: [{ id: 'a', type: 'noop', ...more }] })
    expect(response.status).toBe(400)
    expect(((await response.json()) as ErrorResponse).error).toStartWith(`invalid JSON: tasks[0].${error}`)
  })

  test('null means absent', async () => {
    const task = await control.run({ type: 'noop', retry_on: null, backoff: { initial_ms: null } })
    expect(task.status).toBe('success')
    expect(task.retry_on).toBeUndefined()
  })
})

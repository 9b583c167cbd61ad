/**
 * `attempts` of a task: how each of them ended. Method: shell tasks that fail until a file is there; SIGKILL of the service
 * between two attempts.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const OPEN = { SERVICE_SHELL_POLICY: 'open' }
const RFC_3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/
const time = expect.stringMatching(RFC_3339)

const script = (id: string, text: string, more: object = {}) => ({
  id,
  type: 'shell',
  params: { script: text },
  ...more,
})
const failed = (attempt: number, more: object) => ({
  ...{ attempt, started_at: time, finished_at: time, code: 'exit_nonzero' },
  ...more,
})

describe('attempts', () => {
  let control: Control
  beforeAll(async () => {
    control = await startControl({ env: OPEN })
  })
  afterAll(() => control.dispose())

  test('say how each ended, the last one too', async () => {
    const task = await control.run(script('t', 'echo out; echo "no good" >&2; exit 3', { retry: 1 }))
    const error = 'command failed: exit status 3'
    const ending = { error, exit_code: 3, tail: 'no good' }
    expect(task.attempts).toEqual([failed(1, ending), failed(2, ending)] as never)
    expect(task.error).toBe(`task failed after all retries: ${error}`)
    expect(task.attempts![1]!.started_at).toBe(task.runtime!.started_at!)
    expect(task.attempts![1]!.finished_at).toBe(task.finished_at!)
    expect((await control.list()).find(({ id }) => id === task.id)!.attempts).toEqual(task.attempts!)
    await using mcp = await connectClient(control.url, 'auto')
    expect((await mcp.call('get_task', { task_id: task.id, detail: true })).data.attempts).toEqual(task.attempts)
  })

  test('are absent for a task that was run once', async () => {
    expect(await control.run(script('a', 'exit 1'))).not.toHaveProperty('attempts')
    expect(await control.run(script('b', 'exit 0', { retry: 2 }))).not.toHaveProperty('attempts')
  })

  test('end with the last lines of a long output', async () => {
    const text = 'yes 0123456789 | head -n 300000; echo "the end"; exit 1'
    const task = await control.run(script('t', text, { retry: 1 }))
    const { tail } = task.attempts![0]!
    expect(tail).toEndWith('\n0123456789\nthe end')
    expect(tail).toStartWith('0123456789\n')
    expect(tail!.length).toBeGreaterThan(1_900)
    expect(tail!.length).toBeLessThanOrEqual(2_048)
  })

  test('of a task that succeeds in the end, or times out, or is cancelled', async () => {
    const file = join(control.cwd, 'ready')
    await control.submit([
      script('success', `echo try; test -e ${file}`, { retry: 30 }),
      script('timeout', 'echo started; sleep 600', { retry: 1, timeout: 50 }),
      script('cancel', 'exit 7', { retry: 30 }),
    ])
    await until(
      () => control.get('success'),
      ({ attempts = [] }) => attempts.length > 0,
    )
    writeFileSync(file, '')
    const { attempts } = await control.ended('success')
    expect(attempts![0]).toMatchObject({ attempt: 1, exit_code: 1, tail: 'try' })
    const last = attempts!.at(-1)!
    expect(last).toEqual({ attempt: attempts!.length, started_at: time, finished_at: time, exit_code: 0, tail: 'try' })

    const timedOut = { error: 'task timed out after 50ms', code: 'timeout' }
    expect((await control.ended('timeout')).attempts).toMatchObject([timedOut, timedOut])

    const between = await until(
      () => control.get('cancel'),
      ({ run_status, attempts = [] }) => run_status === 'accepted' && attempts.length > 0,
    )
    await control.fetch('/tasks/cancel/cancel', { method: 'POST' })
    const cancelled = await control.ended('cancel')
    expect(cancelled.status).toBe('cancelled')
    expect(cancelled.attempts!.slice(0, between.attempts!.length)).toEqual([...between.attempts!])
    expect(new Set(cancelled.attempts!.map(({ attempt }) => attempt)).size).toBe(cancelled.attempts!.length)
  })

  test('survive a kill between two attempts and a kill in the middle of one', async () => {
    using dir = tempDir()
    const [dataDir, file] = [join(dir.path, 'data'), join(dir.path, 'begun')]
    const options = { dataDir, env: OPEN, flags: ['--persist-interval', '1h'] }
    const text = `if [ -e ${file} ]; then sleep 600; fi; echo early; exit 5`
    const first = { attempt: 1, error: 'command failed: exit status 5', exit_code: 5, tail: 'early' }
    {
      await using control = await startControl(options)
      await control.submit([script('t', text, { retry: 9 })])
      const { attempts } = await until(
        () => control.get('t'),
        ({ run_status, attempts = [] }) => run_status === 'accepted' && attempts.length > 0,
      )
      expect(attempts![0]).toMatchObject(first)
      await control.stop('SIGKILL')
    }
    writeFileSync(file, '')
    let interrupted = 0
    {
      await using control = await startControl(options)
      const { attempt, attempts } = await until(
        () => control.get('t'),
        (task) => task.run_status === 'running',
      )
      expect(attempts![0]).toMatchObject(first)
      interrupted = attempt!
      await control.stop('SIGKILL')
    }
    await using control = await startControl(options)
    const { attempts } = await control.get('t')
    expect(attempts![0]).toMatchObject(first)
    expect(attempts!.find(({ attempt }) => attempt === interrupted)).toMatchObject({
      code: 'cancelled',
      error: 'the attempt was interrupted: the service was killed',
    })
    await control.fetch('/tasks/t/cancel', { method: 'POST' })
    await control.ended('t')
  })
})

describe('the log line of a failed task', () => {
  test('says "after all retries" only of a task that had retries', async () => {
    await using control = await startControl({ env: OPEN })
    await control.run(script('once', 'exit 1'))
    await control.run(script('twice', 'exit 1', { retry: 1 }))
    const lines = await until(
      () => control.log.filter(({ msg }) => String(msg).startsWith('task failed')),
      (found) => found.length === 2,
    )
    expect(lines).toMatchObject([{ msg: 'task failed' }, { msg: 'task failed after all retries', attempt: 2 }])
  })
})

/** Goal: lines become events, and nothing else does. Method: what launchers write, and what they never would. */
import { describe, expect, test } from 'bun:test'
import { closeSync, lstatSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { type LauncherEvent, NotifyPipe, parseEvent } from '../../../runtime/launch/notify.ts'
import { openBothEnds } from '../../support/fifo.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

describe('a line of a launcher', () => {
  test('is an event', () => {
    expect(parseEvent('started a-b_c.9 11 12 12 3456 1700000000000')).toEqual({
      ...{ event: 'started', task_id: 'a-b_c.9', launcher_pid: 11, pid: 12, pgid: 12 },
      ...{ start_time: 3_456, started_ms: 1_700_000_000_000 },
    })
    expect(parseEvent('timeout x')).toEqual({ event: 'timeout', task_id: 'x' })
    expect(parseEvent('ended x')).toEqual({ event: 'ended', task_id: 'x' })
    expect(parseEvent('gone x 4294967295 137')).toEqual({
      ...{ event: 'gone', task_id: 'x', launch: 4_294_967_295, exit_code: 137, is_killed: false },
    })
    expect(parseEvent('gone x 1 137 killed')).toEqual({
      ...{ event: 'gone', task_id: 'x', launch: 1, exit_code: 137, is_killed: true },
    })
    expect(parseEvent('failed x task_dir 13')).toEqual({ event: 'failed', task_id: 'x', step: 'task_dir', errno: 13 })
  })

  test.each([
    '',
    'ended',
    'ended ',
    'ended a b',
    ' ended a',
    'ENDED a',
    'ended a/b',
    `ended ${'x'.repeat(129)}`,
    'timeout',
    'timeout a b',
    'started a 1 2 3 4',
    'gone a 1',
    'gone a 1 2 by-someone',
  ])('is none of another form: %p', (line) => expect(parseEvent(line)).toBeUndefined())

  test('is none when it is anything else', () => {
    fc.assert(fc.property(fc.string(), (line) => expect(parseEvent(line)).toBeUndefined()))
  })
})

describe('the pipe', () => {
  async function heard(writes: readonly string[], count: number): Promise<LauncherEvent[]> {
    using dir = tempDir()
    const events: LauncherEvent[] = []
    const path = join(dir.path, 'notify')
    const pipe = new NotifyPipe(path, (event) => events.push(event))
    const fd = openBothEnds(path)
    for (const text of writes) writeSync(fd, text)
    await until(() => events.length, count)
    await pipe.close()
    closeSync(fd)
    return events
  }

  test('gives the events of lines that come in pieces, and passes over what is none', async () => {
    const events = await heard(['ended o', 'ne\nnonsense\n\nended two\nend', 'ed three\n'], 3)
    expect(events.map(({ task_id }) => task_id)).toEqual(['one', 'two', 'three'])
  })

  test('finds its way again after a line that has no end', async () => {
    const events = await heard([...Array.from({ length: 10 }, () => 'x'.repeat(1_000)), '\nended one\n'], 1)
    expect(events).toEqual([{ event: 'ended', task_id: 'one' }])
  })

  test('is the same for a service that comes back', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'notify')
    await new NotifyPipe(path, () => {}).close()
    const { ino, mode } = lstatSync(path)
    expect(mode & 0o777).toBe(0o600)
    await new NotifyPipe(path, () => {}).close()
    expect(lstatSync(path).ino).toBe(ino)
  })

  test('keeps lines for a service that comes back, as long as somebody has it open', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'notify')
    await new NotifyPipe(path, () => {}).close()
    const launcher = openBothEnds(path)
    writeSync(launcher, 'ended one\n')
    const events: LauncherEvent[] = []
    const pipe = new NotifyPipe(path, (event) => events.push(event))
    await until(() => events.length, 1)
    await pipe.close()
    closeSync(launcher)
  })

  test('is not made where another file has its name, or there is no directory', () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'file'), '')
    expect(() => new NotifyPipe(join(dir.path, 'file'), () => {})).toThrow('is no FIFO')
    expect(() => new NotifyPipe(join(dir.path, 'missing/notify'), () => {})).toThrow('ENOENT')
  })
})

/**
 * Goal: one JSON object per line, and nothing that a reader does or does not do holds up the service.
 * Method: a sink in memory for what lines say, a process of its own for what becomes of them on standard output.
 */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { LOG_LEVELS, type OpenLog, silentLog } from '../../../shared/logs/log.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { testEnvironment } from '../../support/service.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

type Line = Readonly<Record<string, unknown>>

describe('a log line', () => {
  test('is one JSON object with time, level, service, message and fields', () => {
    const { openLog: log, texts, lines } = memoryLog()
    const before = Date.now()
    log.warn('disk is full', { path: '/a\nb', bytes: 12, nested: { deep: [1] } })
    expect(texts).toHaveLength(1)
    expect(texts[0]!.indexOf('\n')).toBe(texts[0]!.length - 1)
    const [line] = lines()
    expect(line).toEqual({
      time: line!.time,
      level: 'warn',
      service: 'test',
      msg: 'disk is full',
      path: '/a\nb',
      bytes: 12,
      nested: { deep: [1] },
    })
    expect(Object.keys(line!).slice(0, 4)).toEqual(['time', 'level', 'service', 'msg'])
    const at = Date.parse(String(line!.time))
    expect(at).toBeGreaterThanOrEqual(before)
    expect(at).toBeLessThanOrEqual(Date.now())
  })

  test('is written for its level and those above, no others', () => {
    for (const [least, level] of LOG_LEVELS.entries()) {
      const { log, openLog, lines } = memoryLog(level)
      for (const each of LOG_LEVELS) openLog[each](`a line of level ${each}`)
      expect(lines().map((line) => line.level)).toEqual([...LOG_LEVELS.slice(least)])
      expect(log.debugging).toBe(level === 'debug')
    }
  })

  test('carries the fields of the log it comes from, its own before theirs', () => {
    const { openLog: log, lines } = memoryLog()
    const request = log.with({ trace_id: 't1', attempt: 1 })
    for (const level of LOG_LEVELS.slice(1)) request.with({ task_id: 'a' })[level]('inner', { attempt: 2 })
    request.with({ trace_id: 't2' }).info('nested')
    request.error('outer')
    log.info('plain')
    expect(lines().map(({ time: _, service: __, ...line }) => line)).toEqual([
      ...LOG_LEVELS.slice(1).map((level) => ({ level, msg: 'inner', trace_id: 't1', attempt: 2, task_id: 'a' })),
      { level: 'info', msg: 'nested', trace_id: 't2', attempt: 1 },
      { level: 'error', msg: 'outer', trace_id: 't1', attempt: 1 },
      { level: 'info', msg: 'plain' },
    ])
  })

  test('is never folded into one with its equals', () => {
    const { openLog: log, lines } = memoryLog()
    for (let i = 0; i < 100; i++) log.info('the same', { again: true })
    expect(lines()).toHaveLength(100)
  })

  test('goes nowhere from a silent log', () => {
    const log = silentLog()
    const openLog: OpenLog = log
    expect(() => openLog.error('unheard')).not.toThrow()
    expect(log.debugging).toBe(false)
  })
})

/** A process that writes lines in one of the ways of the fixture. */
const FIXTURE = [process.execPath, join(import.meta.dir, '../../fixtures/log-lines.ts')]

function writer(way: string, through: readonly string[] = []) {
  const child = Bun.spawn([...through, ...FIXTURE, way], {
    env: testEnvironment(),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return {
    child,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

describe('lines on standard output', () => {
  test('arrive all and in order before the process ends', async () => {
    await using writing = writer('many')
    const lines = linesOf(await new Response(writing.child.stdout).text())
    expect(lines.map((line) => line.n)).toEqual(Array.from({ length: 20_000 }, (_, n) => n))
    expect(await writing.child.exited).toBe(7)
  })

  test('go on after a drain', async () => {
    await using writing = writer('after-drain')
    let text = ''
    const reading = (async () => {
      const decoder = new TextDecoder()
      for await (const chunk of writing.child.stdout) text += decoder.decode(chunk, { stream: true })
    })()
    await until(
      () => text,
      (seen) => seen.includes('"n":1'),
    )
    await writing.child.stdin.end()
    expect(await writing.child.exited).toBe(7)
    await reading
    expect(linesOf(text).map((line) => line.n)).toEqual([0, 1])
  })

  test('beyond what may wait are dropped and counted, and hold up nobody', async () => {
    // Nothing of the pipe is read before somebody opens the gate.
    using dir = tempDir()
    const gate = join(dir.path, 'gate')
    Bun.spawnSync(['mkfifo', gate])
    await using writing = writer('too-many', ['sh', '-c', `"$@" | { cat ${gate} > /dev/null; exec cat; }`, 'sh'])
    const written = await writing.child.stderr.getReader().read()
    const count = Number(new TextDecoder().decode(written.value))
    await Bun.write(gate, 'open')
    const lines = linesOf(await new Response(writing.child.stdout).text())
    const kept = lines.filter((line) => line.n !== undefined)
    const dropped = lines.reduce((sum, line) => sum + Number(line.dropped ?? 0), 0)
    expect(dropped).toBeGreaterThan(0)
    expect(kept.length + dropped).toBe(count + 1)
    expect(kept.at(-1)?.n).toBe(count)
    expect(kept.length).toBeGreaterThan(7_000) // about 8 MiB of them
    expect(lines.find((line) => line.dropped !== undefined)).toMatchObject({
      level: 'warn',
      msg: 'log lines dropped: stdout is read too slowly',
    })
  })

  test('are not missed when their reader has gone away', async () => {
    await using writing = writer('to-nobody')
    const reader = writing.child.stdout.getReader()
    await reader.read()
    await reader.cancel()
    await writing.child.stdin.end()
    expect(await new Response(writing.child.stderr).text()).toBe('1000\n')
    expect(await writing.child.exited).toBe(7)
  })
})

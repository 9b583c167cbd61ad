/** Goal: a log file never grows beyond its limit, and loses nothing else. Method: real files, and a disk that is full. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileLines, runtimeLogFile } from '../../../shared/logs/log-file.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'

const line = (n: number, padding = 0) => `${JSON.stringify({ n, padding: 'x'.repeat(padding) })}\n`
const numbersIn = (path: string): number[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((text) => JSON.parse(text).n)

describe('a log file', () => {
  test('is private, and continues what is there', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'service.log')
    for (const n of [1, 2]) {
      const lines = fileLines(path, 1_000)
      lines.write(line(n))
      await lines.drain()
    }
    expect(numbersIn(path)).toEqual([1, 2])
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test.each([1, 7, 1_000])('is renamed when it is full, with writes of %d lines', async (atOnce) => {
    using dir = tempDir()
    const path = join(dir.path, 'service.log')
    const lines = fileLines(path, 10_000)
    for (let n = 0; n < 1_000; n++) {
      lines.write(line(n, 100))
      if (n % atOnce === 0) await lines.drain()
      if (!existsSync(path)) continue
      expect(statSync(path).size).toBeLessThanOrEqual(10_000)
    }
    await lines.drain()
    expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(10_000)
    const kept = [...numbersIn(`${path}.1`), ...numbersIn(path)]
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => 1_000 - kept.length + i))
    expect(kept.length).toBeGreaterThan(80)
  })

  test('has a line that is longer than the limit for itself', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'service.log')
    const lines = fileLines(path, 1_000)
    for (const text of [line(1), line(2, 5_000), line(3)]) lines.write(text)
    await lines.drain()
    expect([numbersIn(`${path}.1`), numbersIn(path)]).toEqual([[2], [3]])
  })

  test('that was full before is renamed with the first line', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'service.log')
    writeFileSync(path, line(1, 2_000))
    const lines = fileLines(path, 1_000)
    lines.write(line(2))
    await lines.drain()
    expect([numbersIn(`${path}.1`), numbersIn(path)]).toEqual([[1], [2]])
  })

  test.skipIf(!canMount)('on a full disk loses only the lines of that time, and counts them', async () => {
    using dir = tempDir()
    using disk = smallDisk(join(dir.path, 'disk'), 64 * 1024)
    const path = join(disk.path, 'service.log')
    const lines = fileLines(path, 1_000_000)
    lines.write(line(1))
    await lines.drain()
    disk.fill()
    for (let n = 2; n < 12; n++) {
      lines.write(line(n, 5_000)) // the last page of the file takes a part of the first
      await lines.drain()
    }
    disk.free()
    lines.write(line(12))
    await lines.drain()
    const whole = readFileSync(path, 'utf8')
      .split('\n')
      .filter((text) => text.endsWith('}'))
    expect(whole.map((text) => JSON.parse(text))).toEqual([
      { n: 1, padding: '' },
      {
        time: expect.any(String),
        level: 'warn',
        msg: 'log lines dropped: the log file cannot be written',
        dropped: 10,
      },
      { n: 12, padding: '' },
    ])
  })

  test('that cannot be opened is a usage error with the remedy', () => {
    expect(() => fileLines('/no/such/directory/service.log', 1_000)).toThrow(
      /^cannot open the log file \/no\/such\/directory\/service.log: .* \(choose another with --log-file\)$/,
    )
  })
})

test.each([
  ['/a/taskmill.log', '/a/taskmill-runtime.log'],
  ['/a/b.c/log', '/a/b.c/log-runtime'],
  ['/x.log', '/x-runtime.log'],
])('the runtime service of a control service with the log %s has %s', (path, other) => {
  expect(runtimeLogFile(path)).toBe(other)
})

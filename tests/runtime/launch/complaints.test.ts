import { expect, test } from 'bun:test'
import { appendFileSync, closeSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Complaints, MAX_COMPLAINTS_BYTES } from '../../../runtime/launch/complaints.ts'
import { tempDir } from '../../support/temp.ts'

test('of what launchers complain about the latest is kept, in whole lines', () => {
  using dir = tempDir()
  const path = join(dir.path, 'launchers.log')
  const complaints = new Complaints(path)
  const line = (n: number) => `taskmill-launcher: task ${n}: exec: No such file or directory\n`
  let written = 0
  for (let bytes = 0; bytes <= MAX_COMPLAINTS_BYTES; bytes += line(written).length)
    appendFileSync(path, line(++written))
  complaints.keepShort()
  const kept = readFileSync(path, 'utf8')
  expect(kept.length).toBeLessThan(MAX_COMPLAINTS_BYTES / 2)
  const lines = kept.trimEnd().split('\n')
  expect(lines.length).toBeGreaterThan(1_000)
  expect(kept).toBe(lines.map((_, i) => line(written - lines.length + 1 + i)).join(''))
  // Up to the limit nothing is touched, and what comes goes to the end.
  appendFileSync(path, line(0))
  complaints.keepShort()
  expect(readFileSync(path, 'utf8')).toBe(kept + line(0))
  closeSync(complaints.fd)
})

test('what an earlier service has left is cut at the start', () => {
  using dir = tempDir()
  const path = join(dir.path, 'launchers.log')
  appendFileSync(path, `${'x'.repeat(99)}\n`.repeat(MAX_COMPLAINTS_BYTES / 50))
  closeSync(new Complaints(path).fd)
  expect(statSync(path).size).toBeLessThan(MAX_COMPLAINTS_BYTES)
})

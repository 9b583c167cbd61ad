/** Goal: a stream has exactly the bytes that it was asked for, or fails. Method: real files, one of them cut meanwhile. */
import { expect, test } from 'bun:test'
import { openSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileStream } from '../../../runtime/files/file-stream.ts'
import { tempDir } from '../../support/temp.ts'

const LENGTH = 1_000_000

function openedFile(directory: string) {
  const path = join(directory, 'file')
  writeFileSync(path, 'x'.repeat(LENGTH))
  return { path, fd: openSync(path, 'r') }
}

test.each([
  [0, LENGTH],
  [0, 0],
  [10, 300_000],
  [LENGTH, LENGTH],
])('the bytes from %i to %i', async (from, to) => {
  using dir = tempDir()
  const text = await new Response(fileStream(openedFile(dir.path).fd, from, to)).text()
  expect(text).toBe('x'.repeat(to - from))
})

test('a file that becomes shorter ends the stream with an error', async () => {
  using dir = tempDir()
  const { path, fd } = openedFile(dir.path)
  const reader = fileStream(fd, 0, LENGTH).getReader()
  await reader.read()
  truncateSync(path, 300_000)
  const rest = async () => {
    while (!(await reader.read()).done);
  }
  await expect(rest()).rejects.toThrow('the file became shorter: it ends at byte 300000 of 1000000')
})

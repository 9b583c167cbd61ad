/** Goal: what is put into a file without a name is read from it, and nothing of it is left. Method: real descriptors. */
import { describe, expect, test } from 'bun:test'
import { closeSync, fstatSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { openAnonymousFile, unlinkedFile } from '../../../shared/files/anonymous-file.ts'

describe('an anonymous file', () => {
  test.each(['', 'one line\n', '€'.repeat(100_000)])('holds its content, read from the beginning', (content) => {
    const fd = openAnonymousFile(content)
    expect(readFileSync(fd, 'utf8')).toBe(content)
    expect(fstatSync(fd).nlink).toBe(0)
    closeSync(fd)
  })

  test('has no name in the temporary directory even where it lies there', () => {
    const fd = unlinkedFile()
    expect(fstatSync(fd)).toMatchObject({ nlink: 0, size: 0 })
    expect(readdirSync(tmpdir()).filter((name) => name.startsWith('taskmill-stdin-'))).toEqual([])
    closeSync(fd)
  })
})

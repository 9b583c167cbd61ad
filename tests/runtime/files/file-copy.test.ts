/** Goal: a copy has the content and the hash of the source, shared or not. Method: file systems that share are played. */
import { expect, test } from 'bun:test'
import { closeSync, copyFileSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Clone, cloneFile, copyOpenFile } from '../../../runtime/files/file-copy.ts'
import { tempDir } from '../../support/temp.ts'

const CONTENT = Buffer.concat([Buffer.alloc(3_000_000), Buffer.from('data'), Buffer.alloc(2_000_000)])
const HASH = new Bun.CryptoHasher('sha256').update(CONTENT).digest('hex')

const sharing: Clone = async (from, to) => {
  copyFileSync(`/proc/self/fd/${from}`, to)
  return true
}
const failing: Clone = async (_, to) => {
  writeFileSync(to, '')
  return false
}

test.each<[string, Clone]>([
  ['this one', cloneFile],
  ['one that shares blocks', sharing],
  ['one that leaves an empty file behind', failing],
])('on a file system like %s', async (_, clone) => {
  using temp = tempDir()
  const source = join(temp.path, 'source')
  const to = join(temp.path, 'copy')
  writeFileSync(source, CONTENT)
  const from = openSync(source, 'r')
  let bytes = 0
  const { fd, sha256 } = await copyOpenFile({ from, to: Buffer.from(to), clone, onBytes: (count) => (bytes += count) })
  closeSync(fd)
  expect([sha256, bytes]).toEqual([HASH, CONTENT.length])
  expect(readFileSync(to).equals(CONTENT)).toBe(true)
  const stopped = () => {
    throw new Error('enough')
  }
  const other = join(temp.path, 'other')
  const ending = copyOpenFile({ from, to: Buffer.from(other), clone, onBytes: stopped })
  await expect(ending).rejects.toThrow('enough')
  expect(existsSync(other)).toBe(false)
  closeSync(from)
})

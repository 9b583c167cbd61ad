/** Goal: only one directory is in memory at a time. Method: a list of a large directory, then one of a small directory. */
import { expect, test } from 'bun:test'
import { closeSync, mkdirSync, openSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DirectoryLists } from '../../../runtime/files/directory-list.ts'
import { tempDir } from '../../support/temp.ts'

test('lists wait for each other, also for one that fails', async () => {
  using dir = tempDir()
  const [large, small] = [join(dir.path, 'large'), join(dir.path, 'small')]
  for (const path of [large, small]) mkdirSync(path)
  for (let i = 0; i < 2_000; i++) writeFileSync(join(large, String(i)), '')
  writeFileSync(join(small, 'one'), '')
  const fds = [large, small, join(small, 'one')].map((path) => openSync(path, 'r'))
  const [largeFd, smallFd, fileFd] = fds as [number, number, number]
  const lists = new DirectoryLists()
  const ended: string[] = []
  const [cut, , all] = await Promise.all([
    lists.list(largeFd).finally(() => ended.push('large')),
    lists.list(fileFd).catch(() => ended.push('failed')),
    lists.list(smallFd).finally(() => ended.push('small')),
  ])
  for (const fd of fds) closeSync(fd)
  expect(ended).toEqual(['large', 'failed', 'small'])
  expect([cut?.entries.length, cut?.truncated]).toEqual([1_000, true])
  expect(all).toEqual({ entries: [{ name: 'one', type: 'file', size: 0 }], truncated: false })
})

test('a directory that is removed meanwhile has no list', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'gone')
  mkdirSync(path)
  const fd = openSync(path, 'r')
  rmdirSync(path)
  try {
    expect(await new DirectoryLists().list(fd)).toBeUndefined()
  } finally {
    closeSync(fd)
  }
})

/**
 * Goal: a copy of a directory has all of it or fails, also if another task with the same user removes entries meanwhile.
 * Method: a removal at each point at which the copy lets others work.
 */
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cloneFile } from '../../../runtime/files/file-copy.ts'
import { OpenDirectory } from '../../../runtime/files/open-directory.ts'
import { copyWalked } from '../../../runtime/files/tree-copy.ts'
import { CopyAmount, CopyFault, walkDirectory } from '../../../runtime/files/tree-walk.ts'
import { tempDir } from '../../support/temp.ts'

/** Copies a small tree and calls `meanwhile` with its path at the check with the number `at`. */
async function copyWith(at: number, meanwhile: (path: string) => void) {
  using temp = tempDir()
  const [from, to] = [join(temp.path, 'from'), join(temp.path, 'to')]
  for (const path of [to, join(from, 'a'), join(from, 'empty'), join(from, 'z')]) mkdirSync(path, { recursive: true })
  for (const name of ['a/1', 'a/2', 'b', 'z/1']) writeFileSync(join(from, name), name)
  symlinkSync('/', join(from, 'link'))
  using source = OpenDirectory.open(from)
  using target = OpenDirectory.open(to)
  let checks = 0
  const check = () => {
    if (++checks === at) meanwhile(from)
  }
  const amount = new CopyAmount({ files: 100, bytes: 1_000 })
  const settings = { owner: undefined, sourceUid: source.status.uid, amount, clone: cloneFile, check }
  try {
    const { files } = await copyWalked(walkDirectory(source, Buffer.from('copy'), settings), target, settings)
    return { files, names: readdirSync(join(to, 'copy'), { recursive: true }).toSorted(), checks }
  } catch (error) {
    if (!(error instanceof CopyFault)) throw error
    return { fault: error.message, checks }
  }
}

const ALL = { files: 4, names: ['a', 'a/1', 'a/2', 'b', 'empty', 'z', 'z/1'] }
const REMOVED = { fault: 'was removed meanwhile, or a part of it' }

test.each(['a', 'a/2', 'b', 'empty', 'z', 'z/1', '.'])('%s is removed during the copy', async (name) => {
  const remove = (path: string) => rmSync(join(path, name), { recursive: true })
  const { checks: last, ...undisturbed } = await copyWith(0, remove)
  expect(undisturbed).toEqual(ALL)
  const faults = new Set<boolean>()
  for (let at = 1; at <= last; at++) {
    const { checks: _, ...result } = await copyWith(at, remove)
    const isFault = 'fault' in result
    faults.add(isFault)
    // Whoever reads the names of a directory after the removal of one of them cannot know of it.
    const isUnseen = name.includes('/') && !isFault && result.names.every((other) => other !== name)
    if (isUnseen) expect(result.files).toBe(3)
    else expect<object>(result).toEqual(isFault ? REMOVED : ALL)
  }
  expect(faults.has(true)).toBe(true)
})

test('an entry that became a link meanwhile is left out like any link', async () => {
  const swap = (path: string) => {
    rmSync(join(path, 'z'), { recursive: true })
    symlinkSync('/', join(path, 'z'))
  }
  expect(await copyWith(2, swap)).toMatchObject({ files: 3, names: ['a', 'a/1', 'a/2', 'b', 'empty'] })
})

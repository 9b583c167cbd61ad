/** What a task with a user of its own has left: how the service takes it back, also where it is stopped in between. */
import { expect, test } from 'bun:test'
import {
  existsSync,
  lchownSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { removeShared, takeBack } from '../../../runtime/files/handed-files.ts'
import { taskDirAt } from '../../../runtime/files/task-dir.ts'
import { messageOf } from '../../../shared/contract/errors.ts'
import { nextTurn } from '../../../shared/process/steps.ts'
import { ownUid } from '../../support/ordinary-user.ts'
import { tempDir } from '../../support/temp.ts'

const skip = process.getuid?.() !== 0
const why = skip ? ' (skipped: needs root)' : ''
const UID = ownUid(55_000)

/** Entries for which a walk takes several turns of the event loop. */
const MANY = 5_000

/** Of the descriptors of this process. */
const openPaths = () =>
  readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return '' // that of the list itself
    }
  })

/** The directory of a task that has left files, a directory and a link to a file of root. */
function leftBehind(path: string) {
  const dir = taskDirAt(join(path, 'task'))
  mkdirSync(join(dir.workspace, 'sub', 'deep'), { recursive: true })
  for (const name of ['a', 'sub/b', 'sub/deep/c']) writeFileSync(join(dir.workspace, name), name)
  symlinkSync('a', join(dir.workspace, 'link'))
  for (const name of ['', 'a', 'link', 'sub', 'sub/b', 'sub/deep', 'sub/deep/c']) {
    lchownSync(join(dir.workspace, name), UID, UID)
  }
  writeFileSync(join(path, 'of-root'), '')
  linkSync(join(path, 'of-root'), join(dir.workspace, 'sub', 'foreign'))
  return dir
}

const TAKEN = { a: 0, link: 0, sub: 0, 'sub/b': 0, 'sub/deep': 0, 'sub/deep/c': 0 }

const ownersIn = (workspace: string) =>
  Object.fromEntries(
    readdirSync(workspace, { recursive: true, encoding: 'utf8' })
      .toSorted()
      .map((name) => [name, lstatSync(join(workspace, name)).uid]),
  )

test.skipIf(skip)(`files of others are removed, and taking back twice takes nothing away${why}`, async () => {
  using temp = tempDir()
  const dir = leftBehind(temp.path)
  for (let i = 0; i < 2; i++) {
    await takeBack(dir, UID)
    expect(ownersIn(dir.workspace)).toEqual(TAKEN)
  }
  expect(existsSync(join(temp.path, 'of-root'))).toBe(true)
})

test.skipIf(skip)(`what was taken only in part is taken as a whole the next time${why}`, async () => {
  using temp = tempDir()
  const dir = leftBehind(temp.path)
  await takeBack(dir, UID)
  for (const name of ['a', 'sub/deep/c']) lchownSync(join(dir.workspace, name), UID, UID)
  await takeBack(dir, UID)
  expect(ownersIn(dir.workspace)).toEqual(TAKEN)
})

test.skipIf(skip)(`a directory of the next task with the same id stays as it is${why}`, async () => {
  using temp = tempDir()
  const dir = leftBehind(temp.path)
  const before = ownersIn(dir.workspace)
  await takeBack(dir, UID + 1)
  expect(ownersIn(dir.workspace)).toEqual(before)
})

test.skipIf(skip)(`a walk does not leave the workspace through a directory that is moved meanwhile${why}`, async () => {
  using temp = tempDir()
  const dir = leftBehind(temp.path)
  const outside = join(temp.path, 'outside')
  mkdirSync(join(outside, 'victim'), { recursive: true })
  writeFileSync(join(outside, 'victim', 'of-root'), '')
  const long = join(dir.workspace, 'sub', 'deep')
  for (let i = 0; i < MANY; i++) {
    symlinkSync('x', join(long, String(i)))
    lchownSync(join(long, String(i)), UID, UID)
  }
  mkdirSync(join(dir.workspace, 'sub', 'victim'))
  const taken = takeBack(dir, UID).then(() => 'taken', messageOf)
  while (!openPaths().includes(long)) await nextTurn()
  renameSync(long, join(outside, 'deep'))
  expect(await taken).toBe('a directory of the task was moved by a process of its user')
  expect(readdirSync(join(outside, 'victim'))).toEqual(['of-root'])
})

test.skipIf(skip)(
  `what a user leaves in directories that all may write is removed, not given to root${why}`,
  async () => {
    using temp = tempDir()
    const name = join('/var/tmp', `taskmill-${crypto.randomUUID()}`)
    const left = ['.log', '.dir', '.file'].map((end) => name + end)
    symlinkSync(temp.path, left[0]!)
    mkdirSync(join(left[1]!, 'sub'), { recursive: true })
    symlinkSync(temp.path, join(left[1]!, 'sub', 'link'))
    writeFileSync(left[2]!, '')
    writeFileSync(join(temp.path, 'of-root'), '')
    for (const path of [...left, join(left[1]!, 'sub')]) lchownSync(path, UID, UID)
    await removeShared(UID)
    const isThere = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined
    expect(left.filter(isThere)).toEqual([])
    expect(readdirSync(temp.path)).toEqual(['of-root'])
  },
)

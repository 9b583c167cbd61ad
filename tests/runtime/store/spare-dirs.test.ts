/**
 * Goal: the directory of a removed task serves another one with nothing of the first in it, and only if it is as a task is
 * given it.
 * Method: the real functions in a temporary directory, where the test does what launchers, readers and hostile tasks would.
 */
import { ptr } from 'bun:ffi'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import {
  draftResultFile,
  makeTaskDir,
  publishResultFile,
  type TaskDir,
  taskDir,
  tasksDir,
} from '../../../runtime/files/task-dir.ts'
import { logStream } from '../../../runtime/store/log-stream.ts'
import { SpareDirs } from '../../../runtime/store/spare-dirs.ts'
import { loadLibc } from '../../../shared/process/libc.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

const OUTCOME = 'version=1\nhow=exited\nleftovers_killed=0\nleftovers_alive=0\nend=1\n'
const CONTENT = { script: undefined, workspaceSubdir: '' }

let temp: TempDir
let spares: SpareDirs
let old: TaskDir
beforeEach(() => {
  temp = tempDir()
  mkdirSync(tasksDir(temp.path))
  spares = new SpareDirs(temp.path)
  old = taskDir(temp.path, 'old')
  makeTaskDir(old, { ...CONTENT, request: 'old' })
  writeFileSync(old.stdout_path, 'old')
  writeFileSync(join(old.task_dir, 'outcome'), OUTCOME, { mode: 0o600 })
  draftResultFile(old, 'old')
  publishResultFile(old)
})
afterEach(() => temp[Symbol.dispose]())

const inodesOf = ({ task_dir, request_path }: TaskDir) => [task_dir, request_path].map((path) => lstatSync(path).ino)

const libc = loadLibc({
  setxattr: { args: ['ptr', 'ptr', 'ptr', 'u64', 'i32'], returns: 'i32' },
  listxattr: { args: ['ptr', 'ptr', 'u64'], returns: 'i64' },
} as const)
const text = (value: string) => ptr(Buffer.from(`${value}\0`))

const namesIn = (path: string) => readdirSync(path).sort()

test('the next task gets it, with nothing of the one before', async () => {
  const inodes = inodesOf(old)
  expect(await spares.keep(old)).toBe(true)
  expect(existsSync(old.task_dir)).toBe(false)
  const [name, ...none] = readdirSync(tasksDir(temp.path))
  expect([spares.has(name!), none]).toEqual([true, []])

  const next = taskDir(temp.path, 'next')
  makeTaskDir(next, { request: 'next', script: 'true', workspaceSubdir: 'a/b' }, spares)
  expect(inodesOf(next)).toEqual(inodes)
  expect(namesIn(next.task_dir)).toEqual(
    ['outcome.new', 'request.json', 'result.new', 'script', 'stderr.log', 'stdout.log', 'workspace'].sort(),
  )
  expect(readFileSync(next.request_path, 'utf8')).toBe('next')
  for (const name of ['outcome.new', 'result.new', 'stdout.log', 'stderr.log'])
    expect(lstatSync(join(next.task_dir, name)).size).toBe(0)
  expect(readdirSync(next.workspace, { recursive: true })).toEqual(['a', 'a/b'])
  draftResultFile(next, 'result')
  publishResultFile(next)
  expect(readFileSync(next.result_path, 'utf8')).toBe('result')
  expect(existsSync(join(next.task_dir, 'result.new'))).toBe(false)

  const another = taskDir(temp.path, 'another') // there is none left
  makeTaskDir(another, { ...CONTENT, request: 'another' }, spares)
  expect(namesIn(another.task_dir)).toEqual(['request.json', 'stderr.log', 'stdout.log', 'workspace'])
})

test.skipIf(libc === null)('what a task wrote beside the content of its files is gone', async () => {
  const paths = [old.workspace, old.stdout_path, old.stderr_path]
  for (const path of paths) expect(libc!.setxattr(text(path), text('user.mine'), text('secret'), 6, 0)).toBe(0)
  expect(await spares.keep(old)).toBe(true)
  makeTaskDir(old, { ...CONTENT, request: 'next' }, spares)
  for (const path of paths) expect(libc!.listxattr(text(path), null, 0)).toBe(0n)
})

test('what was in the workspace, and a script, are gone', async () => {
  mkdirSync(join(old.workspace, 'deep/er'), { recursive: true })
  writeFileSync(join(old.workspace, 'deep/er/file'), 'old')
  writeFileSync(old.script_path, 'old')
  expect(await spares.keep(old)).toBe(true)
  makeTaskDir(old, { ...CONTENT, request: 'next' }, spares)
  expect(readdirSync(old.workspace)).toEqual([])
  expect(existsSync(old.script_path)).toBe(false)
})

test('a task that was never launched leaves one, too', async () => {
  rmSync(join(old.task_dir, 'outcome'))
  rmSync(old.result_path)
  expect(await spares.keep(old)).toBe(true)
})

test('one that was made ahead is as one of a removed task', async () => {
  expect(await spares.keep(old)).toBe(true)
  const [kept] = readdirSync(tasksDir(temp.path))
  const contentOf = (dir: string) =>
    ['.', ...readdirSync(dir)].sort().map((name) => {
      const { mode, uid, gid, size } = lstatSync(join(dir, name))
      return { name, mode, uid, gid, size: name === 'workspace' || name === '.' ? 0 : size }
    })
  const content = contentOf(join(tasksDir(temp.path), kept!))
  expect(spares.take(old)).toBe(true)
  spares.stock()
  const next = taskDir(temp.path, 'next')
  expect(spares.take(next)).toBe(true)
  expect(contentOf(next.task_dir)).toEqual(content)
  expect(spares.take(next)).toBe(false)
})

test('a few are made ahead, and no more', () => {
  for (let i = 0; i < 10; i++) spares.stock()
  const names = readdirSync(tasksDir(temp.path)).filter((name) => spares.has(name))
  expect(names).toHaveLength(4)
})

test('none is made ahead where there is no place, and the next task gets none', () => {
  const away = join(temp.path, 'away')
  renameSync(tasksDir(temp.path), away)
  spares.stock()
  renameSync(away, tasksDir(temp.path))
  expect(readdirSync(tasksDir(temp.path))).toEqual(['old'])
  expect(spares.take(taskDir(temp.path, 'next'))).toBe(false)
})

test('a directory that is in the way of a task is not merged with it', async () => {
  expect(await spares.keep(old)).toBe(true)
  mkdirSync(old.task_dir)
  writeFileSync(join(old.task_dir, 'stray'), '')
  makeTaskDir(old, { ...CONTENT, request: 'next' }, spares)
  expect(namesIn(old.task_dir)).toEqual(['request.json', 'stderr.log', 'stdout.log', 'workspace'])
})

const ODD: Readonly<Record<string, (dir: TaskDir, outside: string) => void>> = {
  'another file': ({ task_dir }) => writeFileSync(join(task_dir, 'other'), ''),
  'the record of a process without an end': ({ task_dir }) =>
    renameSync(join(task_dir, 'outcome'), join(task_dir, 'started')),
  'a process that did not end': ({ task_dir }) =>
    writeFileSync(join(task_dir, 'outcome'), OUTCOME.replace('alive=0', 'alive=1')),
  'an empty outcome': ({ task_dir }) => truncateSync(join(task_dir, 'outcome')),
  'no request': ({ request_path }) => rmSync(request_path),
  'no output': ({ stderr_path }) => rmSync(stderr_path),
  'a second name of its output': ({ stdout_path }, outside) => linkSync(stdout_path, outside),
  'a link in the place of its request': ({ request_path }, outside) => {
    rmSync(request_path)
    symlinkSync(outside, request_path)
  },
  'a directory in the place of its output': ({ stdout_path }) => {
    rmSync(stdout_path)
    mkdirSync(stdout_path)
  },
  'output that everybody may read': ({ stdout_path }) => chmodSync(stdout_path, 0o644),
  'much output': ({ stdout_path }) => truncateSync(stdout_path, 65_537),
  'a workspace that everybody may enter': ({ workspace }) => chmodSync(workspace, 0o755),
  'a link in the place of its workspace': ({ workspace }, outside) => {
    rmSync(workspace, { recursive: true })
    symlinkSync(outside, workspace)
  },
  'a directory that others pass': ({ task_dir }) => chmodSync(task_dir, 0o711),
  'no directory': ({ task_dir }) => rmSync(task_dir, { recursive: true }),
}

test.each(Object.entries(ODD))('it is not kept with %s', async (_, change) => {
  const outside = join(temp.path, 'outside')
  writeFileSync(outside, 'mine')
  if (_.includes('second name')) rmSync(outside)
  change(old, outside)
  expect(await spares.keep(old)).toBe(false)
  expect(spares.take(old)).toBe(false)
  if (!_.includes('second name')) expect(readFileSync(outside, 'utf8')).toBe('mine')
})

test('no more are kept than MAX_SPARES, which is 3 here', async () => {
  spares = new SpareDirs(temp.path, 3)
  const ended = (name: string) => {
    const dir = taskDir(temp.path, name)
    makeTaskDir(dir, { ...CONTENT, request: name })
    return dir
  }
  for (let i = 0; i < 3; i++) expect(await spares.keep(ended(`task-${i}`))).toBe(true)
  const last = ended('last')
  expect(await spares.keep(last)).toBe(false)
  makeTaskDir(taskDir(temp.path, 'next'), { ...CONTENT, request: 'next' }, spares)
  expect(await spares.keep(last)).toBe(true)
})

test.skipIf(process.getuid?.() !== 0)('it is not kept with the user of a task', async () => {
  chownSync(old.workspace, 12_345, 12_345)
  expect(await spares.keep(old)).toBe(false)
})

test('it is not kept while somebody reads its output', async () => {
  // They would be put aside before or after the output is found to be read, as the file system lists them.
  for (const name of ['outcome', 'result.json']) rmSync(join(old.task_dir, name))
  const follower = { ended: new Promise(() => {}) }
  const reader = logStream(old.stdout_path, follower).getReader()
  await reader.read()
  expect(await spares.keep(old)).toBe(false)
  await reader.cancel()
  expect(await spares.keep(old)).toBe(true)
})

/** Goal: a task gets a directory that was made ahead with all that it needs. Method: the real functions in a temporary directory. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { lstatSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SpareDirs } from '../../../runtime/files/spare-dirs.ts'
import { draftResultFile, makeTaskDir, publishResultFile, taskDir, tasksDir } from '../../../runtime/files/task-dir.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

const CONTENT = { script: undefined, workspaceSubdir: '' }

let temp: TempDir
let spares: SpareDirs
beforeEach(() => {
  temp = tempDir()
  mkdirSync(tasksDir(temp.path))
  spares = new SpareDirs(temp.path)
})
afterEach(() => temp[Symbol.dispose]())

const namesIn = (path: string) => readdirSync(path).sort()

test('the next task gets it, and the one after that another', () => {
  spares.stock()
  const [name, ...none] = readdirSync(tasksDir(temp.path))
  expect([spares.has(name!), none]).toEqual([true, []])
  const inode = lstatSync(join(tasksDir(temp.path), name!)).ino

  const next = taskDir(temp.path, 'next')
  makeTaskDir(next, { request: 'next', script: 'true', workspaceSubdir: 'a/b' }, spares)
  expect(lstatSync(next.task_dir).ino).toBe(inode)
  expect(namesIn(next.task_dir)).toEqual(
    ['outcome.new', 'request.json', 'result.new', 'script', 'stderr.log', 'stdout.log', 'workspace'].sort(),
  )
  expect(readFileSync(next.request_path, 'utf8')).toBe('next')
  for (const file of ['outcome.new', 'result.new', 'stdout.log', 'stderr.log'])
    expect(lstatSync(join(next.task_dir, file)).size).toBe(0)
  expect(readdirSync(next.workspace, { recursive: true })).toEqual(['a', 'a/b'])
  draftResultFile(next, 'result')
  publishResultFile(next)
  expect(readFileSync(next.result_path, 'utf8')).toBe('result')

  const another = taskDir(temp.path, 'another') // there is none left
  makeTaskDir(another, { ...CONTENT, request: 'another' }, spares)
  expect(namesIn(another.task_dir)).toEqual(['request.json', 'stderr.log', 'stdout.log', 'workspace'])
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
  expect(readdirSync(tasksDir(temp.path))).toEqual([])
  expect(spares.take(taskDir(temp.path, 'next'))).toBe(false)
})

test('a directory that is in the way of a task is not merged with it', () => {
  spares.stock()
  const next = taskDir(temp.path, 'next')
  mkdirSync(next.task_dir)
  writeFileSync(join(next.task_dir, 'stray'), '')
  makeTaskDir(next, { ...CONTENT, request: 'next' }, spares)
  expect(namesIn(next.task_dir)).toEqual(['request.json', 'stderr.log', 'stdout.log', 'workspace'])
})

/**
 * Goal: a file with a secret is made in the workspace alone, never over anything, and removed whatever became of the place.
 * Method: the real functions in a temporary directory, where the test does what a hostile task would.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { removeSecretFiles, writeSecretFiles } from '../../../runtime/files/secret-files.ts'
import { type TaskDir, taskDirAt } from '../../../runtime/files/task-dir.ts'
import { SecretFault } from '../../../shared/files/secrets-directory.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

let temp: TempDir
let dir: TaskDir
beforeEach(() => {
  temp = tempDir()
  dir = taskDirAt(join(temp.path, 'task'))
  mkdirSync(dir.workspace, { recursive: true, mode: 0o700 })
  mkdirSync(join(temp.path, 'outside'))
})
afterEach(() => temp[Symbol.dispose]())

const secret = (path: string, value = 'v') => ({ variable: 'TOKEN', names: path.split('/'), value: Buffer.from(value) })
const write = (...paths: string[]) =>
  writeSecretFiles(
    dir,
    paths.map((path) => secret(path)),
    undefined,
  )
const remove = (...paths: string[]) =>
  removeSecretFiles(
    dir,
    paths.map((path) => path.split('/')),
  )
const at = (path: string) => join(dir.workspace, path)
const modeOf = (path: string) => lstatSync(path).mode & 0o777

test('files and the directories that lead to them are closed to others', () => {
  write('token', 'a/b/token', 'a/other')
  expect(['token', 'a/b/token', 'a/other'].map((path) => [readFileSync(at(path), 'utf8'), modeOf(at(path))])).toEqual(
    Array(3).fill(['v', 0o400]),
  )
  expect([modeOf(at('a')), modeOf(at('a/b'))]).toEqual([0o700, 0o700])
  expect(remove('token', 'a/b/token', 'a/other')).toBeUndefined()
  expect(readdirSync(dir.workspace, { recursive: true }).toSorted()).toEqual(['a', 'a/b'])
})

test('a directory with the name of the workspace is one like any other', () => {
  write('workspace/token')
  expect(readFileSync(at('workspace/token'), 'utf8')).toBe('v')
  expect(remove('workspace/token')).toBeUndefined()
  expect(existsSync(at('workspace/token'))).toBe(false)
})

describe('a place that is taken is left as it is, and nothing of the other files stays', () => {
  const taken: readonly (readonly [string, () => void, string])[] = [
    ['a file', () => writeFileSync(at('x'), 'mine'), 'x is there already'],
    ['a directory', () => mkdirSync(at('x')), 'x is there already'],
    ['a link to a file', () => symlinkSync(join(temp.path, 'outside', 'target'), at('x')), 'x is there already'],
    [
      'a link in place of a directory',
      () => symlinkSync(join(temp.path, 'outside'), at('d')),
      'no directory leads to "d/x"',
    ],
    ['a file in place of a directory', () => writeFileSync(at('d'), 'mine'), 'no directory leads to "d/x"'],
  ]
  test.each(taken)('%s', (_, make, message) => {
    make()
    const path = message.includes('d/x') ? 'd/x' : 'x'
    const before = readdirSync(temp.path, { recursive: true }).toSorted()
    expect(() => write('first', path)).toThrow(new SecretFault(`secrets.TOKEN.file: ${message}`))
    expect(readdirSync(temp.path, { recursive: true }).toSorted()).toEqual(before)
  })

  test('the workspace is a link', () => {
    rmSync(dir.workspace, { recursive: true })
    symlinkSync(join(temp.path, 'outside'), dir.workspace)
    expect(() => write('x')).toThrow(SecretFault)
    expect(readdirSync(join(temp.path, 'outside'))).toEqual([])
  })
})

describe('the removal stays in the workspace', () => {
  const bait = () => join(temp.path, 'outside', 'token')
  beforeEach(() => {
    write('d/token')
    writeFileSync(bait(), 'of somebody else')
  })
  afterEach(() => expect(readFileSync(bait(), 'utf8')).toBe('of somebody else'))

  test('the file became a link', () => {
    rmSync(at('d/token'))
    symlinkSync(bait(), at('d/token'))
    expect(remove('d/token')).toBeUndefined()
    expect(readdirSync(at('d'))).toEqual([])
  })

  test('its directory became a link', () => {
    renameSync(at('d'), at('moved'))
    symlinkSync(join(temp.path, 'outside'), at('d'))
    expect(remove('d/token')).toBeUndefined()
  })

  test('the workspace became a link', () => {
    renameSync(dir.workspace, join(temp.path, 'moved'))
    mkdirSync(join(temp.path, 'outside', 'd'))
    writeFileSync(join(temp.path, 'outside', 'd', 'token'), '')
    symlinkSync(join(temp.path, 'outside'), dir.workspace)
    expect(remove('d/token')).toBeUndefined()
    expect(existsSync(join(temp.path, 'outside', 'd', 'token'))).toBe(true)
  })

  test('the file became a directory, or all is gone', () => {
    rmSync(at('d/token'))
    mkdirSync(at('d/token'))
    expect(remove('d/token')).toBeUndefined()
    rmSync(dir.task_dir, { recursive: true })
    expect(remove('d/token')).toBeUndefined()
  })

  test('the task has closed its directories', () => {
    chmodSync(at('d'), 0)
    chmodSync(dir.workspace, 0)
    expect(remove('d/token')).toBeUndefined()
    chmodSync(dir.workspace, 0o700)
    chmodSync(at('d'), 0o700)
    expect(readdirSync(at('d'))).toEqual([])
  })
})

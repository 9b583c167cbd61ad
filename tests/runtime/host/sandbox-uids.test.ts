/** User ids of sandboxes: which of them a service takes, by what other services have left. */
import { expect, test } from 'bun:test'
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SandboxUids } from '../../../runtime/host/sandbox-uids.ts'
import { LOCK_FILES, lockDirectory, tryLock } from '../../../shared/files/directory-lock.ts'
import { createLog, silentLog } from '../../../shared/logs/log.ts'
import { tempDir } from '../../support/temp.ts'

/** Borne by no process. */
const UID = 91_234
const ONE = { first: UID, last: UID }

const isTaken = (locks: string) => !new SandboxUids(ONE, undefined, locks).hasFree

test('an id that a killed service has promised to a task is not taken', () => {
  using temp = tempDir()
  const [dataDir, taskDir] = [join(temp.path, 'data'), join(temp.path, 'task')]
  for (const directory of [dataDir, taskDir]) mkdirSync(directory)
  /** For a service that finds the id promised by the process `pid`. Who takes an id keeps its lock. */
  const isPromised = (pid = process.pid) => {
    using locks = tempDir()
    writeFileSync(join(locks.path, String(UID)), JSON.stringify({ pid, data_dir: dataDir, task_dir: taskDir }))
    return isTaken(locks.path)
  }
  expect(isPromised()).toBe(false)

  const ofForkServer = lockDirectory(dataDir, LOCK_FILES.runtime)
  expect(isPromised()).toBe(true)
  // The next service of that directory is there, so all that the killed one asked for is started.
  expect(isPromised(process.pid + 1)).toBe(false)
  closeSync(ofForkServer)
  expect(isPromised()).toBe(false)

  const ofLauncher = openSync(taskDir, 'r')
  expect(tryLock(ofLauncher)).toBe(true)
  expect(isPromised()).toBe(true)
  closeSync(ofLauncher)
  expect(isPromised()).toBe(false)
})

test('a service writes down to which task it promises an id, and locks it', () => {
  using temp = tempDir()
  const user = { dataDir: '/data', taskDirOf: (id: string) => `/data/tasks/${id}`, log: silentLog() }
  const uids = new SandboxUids(ONE, user, temp.path)
  const promised = () => JSON.parse(readFileSync(join(temp.path, String(UID)), 'utf8')) as unknown
  for (const id of ['first', 'b']) {
    expect(uids.take(id)).toBe(UID)
    expect(promised()).toEqual({ pid: process.pid, data_dir: '/data', task_dir: `/data/tasks/${id}` })
    expect(isTaken(temp.path)).toBe(true)
    uids.release(id)
  }
})

test('a service that cannot lock ids goes on, and warns once', () => {
  using temp = tempDir()
  const file = join(temp.path, 'file')
  writeFileSync(file, '')
  const lines: string[] = []
  const log = createLog({ write: (line: string) => void lines.push(line), drain: async () => {} }, 'info', 'runtime')
  const user = { dataDir: '/data', taskDirOf: (id: string) => id, log }
  const uids = new SandboxUids({ first: UID, last: UID + 1 }, user, join(file, 'locks'))
  expect([uids.take('a'), uids.take('b')]).toEqual([UID, UID + 1])
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    {
      level: 'warn',
      msg: expect.stringContaining('are not locked: give other services'),
      cause: expect.stringContaining('ENOTDIR'),
    },
  ])
})

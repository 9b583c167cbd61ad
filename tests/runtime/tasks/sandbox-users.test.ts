/** Users of sandboxes after the end of their tasks: when another task gets them, and what is taken from them. */
import { afterEach, expect, test } from 'bun:test'
import { lchownSync, lstatSync, mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { taskDirAt } from '../../../runtime/files/task-dir.ts'
import { SandboxUids, uidsOfProcesses } from '../../../runtime/host/sandbox-uids.ts'
import { LiveTask } from '../../../runtime/store/live-task.ts'
import { SandboxUsers } from '../../../runtime/tasks/sandbox-users.ts'
import { createLog } from '../../../shared/logs/log.ts'
import { ownUid } from '../../support/ordinary-user.ts'
import { acceptedRow } from '../../support/stored-tasks.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const skip = process.getuid?.() !== 0
const why = skip ? ' (skipped: needs root)' : ''
const FIRST = ownUid(55_000)
const RANGE = { first: FIRST, last: FIRST + 1 }

function service(path: string, range = RANGE) {
  const locks = join(path, 'locks')
  const lines: string[] = []
  const log = createLog({ write: (line: string) => void lines.push(line), drain: async () => {} }, 'info', 'runtime')
  const uids = new SandboxUids(range, { dataDir: path, taskDirOf: (id) => join(path, id), log }, locks)
  const dir = taskDirAt(join(path, 'A'))
  mkdirSync(dir.workspace, { recursive: true })
  return { users: new SandboxUsers(uids, log), locks, dir, lines }
}

const task = (sandbox_uid: number | null, namespaces: object) => {
  const execution_plan = JSON.stringify({ effective_sandbox: { profile: 'linux_sandbox', namespaces } })
  return new LiveTask({ ...acceptedRow('A', { execution_plan, sandbox_uid }), ordinal: 1 }, '[]')
}

const processes: Bun.Subprocess[] = []
afterEach(async () => {
  for (const one of processes.splice(0)) {
    one.kill('SIGKILL')
    await one.exited
  }
})

test.skipIf(skip)(`a user that a process keeps is not taken from the next task with the same id${why}`, async () => {
  using temp = tempDir()
  const { users, dir } = service(temp.path)
  expect(users.take('A')).toBe(FIRST)
  const survivor = Bun.spawn(['setpriv', `--reuid=${FIRST}`, '--clear-groups', 'sleep', '1000'])
  processes.push(survivor)
  await until(uidsOfProcesses, (uids) => uids.has(FIRST))
  await users.takeBack(task(FIRST, { mount: true, ipc: true, pid: false }), dir, true)
  expect(users.take('A')).toBe(FIRST + 1)
  const { freed } = users
  survivor.kill('SIGKILL')
  await freed
  expect(users.of('A')).toBe(FIRST + 1)
  expect(users.take('B')).toBe(FIRST)
})

test.skipIf(skip)(`what could not be taken back is taken later, and then the user is free${why}`, async () => {
  using temp = tempDir()
  const { users, dir, lines } = service(temp.path, { first: FIRST, last: FIRST })
  users.take('A')
  rmSync(dir.task_dir, { recursive: true })
  symlinkSync('A', dir.task_dir) // a circle, which nobody can open
  await users.takeBack(task(FIRST, { mount: true, ipc: true, pid: true }), dir, true)
  expect(lines.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { msg: 'the user of a sandbox cannot be given back', task_id: 'A', uid: FIRST },
  ])
  expect(users.hasFree).toBe(false)
  unlinkSync(dir.task_dir)
  mkdirSync(dir.workspace, { recursive: true })
  const file = join(dir.workspace, 'result')
  writeFileSync(file, '')
  for (const path of [file, dir.workspace]) lchownSync(path, FIRST, FIRST)
  await until(() => users.hasFree)
  expect(lstatSync(file).uid).toBe(0)
  expect(users.take('B')).toBe(FIRST)
  expect(lines).toHaveLength(1)
})

test.skipIf(skip)(
  `what the sandbox of another service has left on the host stays, though its user was ours${why}`,
  async () => {
    using temp = tempDir()
    const { users, dir, locks } = service(temp.path)
    expect(new SandboxUids(RANGE, undefined, locks).take('of another service')).toBe(FIRST)
    const theirs = `/var/tmp/taskmill-${crypto.randomUUID()}`
    const ours = join(dir.workspace, 'result')
    for (const path of [theirs, ours]) writeFileSync(path, '')
    for (const path of [theirs, ours, dir.workspace]) lchownSync(path, FIRST, FIRST)
    try {
      const ended = task(FIRST, { mount: false, ipc: false, pid: true })
      users.restore(ended)
      await users.takeBack(ended, dir, true)
      expect([lstatSync(theirs).uid, lstatSync(ours).uid]).toEqual([FIRST, 0])
      expect(users.take('B')).toBe(FIRST + 1)
    } finally {
      unlinkSync(theirs)
    }
  },
)

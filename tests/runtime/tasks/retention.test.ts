/**
 * Goal: sweeps and deletions of the same task never remove what a new task of that id has.
 * Method: a store and task directories of their own; both kinds of removal at the same time, and a new task at once.
 */
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { SpareDirs } from '../../../runtime/files/spare-dirs.ts'
import { StagedFiles } from '../../../runtime/files/staged-files.ts'
import { makeTaskDir, taskDir } from '../../../runtime/files/task-dir.ts'
import { FileHolds } from '../../../runtime/tasks/file-holds.ts'
import { ResultFiles } from '../../../runtime/tasks/result-files.ts'
import { Retention } from '../../../runtime/tasks/retention.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { HELD } from '../../support/held.ts'
import { storedTasks } from '../../support/stored-tasks.ts'
import { until } from '../../support/until.ts'

const CONTENT = { request: '', script: undefined, workspaceSubdir: '' }

function retentionOf({ store, path: dataDir }: ReturnType<typeof storedTasks>, holds = new FileHolds()) {
  const results = new ResultFiles(dataDir, silentLog())
  const retention = new Retention({
    ...{ store, dataDir, results, holds, directory: HELD, log: silentLog() },
    spares: new SpareDirs(dataDir),
    staged: new StagedFiles({
      ...{ dataDir, directory: HELD, needed: () => new Set<string>() },
      limits: { bundle: 0, all: 0 },
    }),
    config: { resultRetentionSecs: 1, stagedRetentionSecs: 1, gcIntervalMs: 1_000 },
  })
  return { retention, results }
}

/** Tasks that a sweep removes before the one in question: time for a deletion to come between. */
const OTHERS = 40

test.each(['sweep', 'delete'] as const)('a new task keeps its directory when a %s comes first', async (first) => {
  using at = storedTasks()
  const { store, path: dataDir } = at
  const { retention } = retentionOf(at)
  const run = async (id: string, request: string, finishedAt?: number) => {
    makeTaskDir(taskDir(dataDir, id), { ...CONTENT, request })
    await at.end(await at.accept(id), finishedAt)
  }
  for (let i = 0; i < OTHERS; i++) await run(`other-${i}`, '')
  await run('task', 'old', 6_000)
  const remove = () => retention.delete({ taskId: 'task', owner: null, traceId: 't' })
  const sweep = () => retention.sweep()
  const removals = first === 'sweep' ? [sweep(), remove()] : [remove(), sweep()]
  await until(() => store.has('task'), false)
  await run('task', 'new', Date.now()) // the moment that its id is free
  await Promise.all(removals)
  expect(readFileSync(taskDir(dataDir, 'task').request_path, 'utf8')).toBe('new')
  expect(store.get('task')).toBeDefined()
})

test('the result file of a deleted task is not written into the directory of a new one', async () => {
  using at = storedTasks()
  const { path: dataDir } = at
  const { retention, results } = retentionOf(at)
  const task = await at.accept('task')
  await at.end(task)
  task.finalStatus = '{"of":"the first"}'
  results.write(task) // there is no directory: it is to be tried again
  await retention.delete({ taskId: 'task', owner: null, traceId: 't' })
  makeTaskDir(taskDir(dataDir, 'task'), { ...CONTENT, request: 'new' })
  results.writeAgain()
  expect(existsSync(taskDir(dataDir, 'task').result_path)).toBe(false)
})

test('tasks whose files are being copied stay until the next sweep, and keep no other task', async () => {
  using at = storedTasks()
  const { store, path: dataDir } = at
  const holds = new FileHolds()
  const { retention } = retentionOf(at, holds)
  const ids = Array.from({ length: 120 }, (_, i) => `task-${i}`)
  for (const [i, id] of ids.entries()) {
    makeTaskDir(taskDir(dataDir, id), { ...CONTENT, request: id })
    await at.end(await at.accept(id), i + 1)
  }
  const held = ids.slice(0, 60) // the oldest, and more than one slice of a sweep
  const remove = () => retention.delete({ taskId: 'task-0', owner: null, traceId: 't' })
  {
    using _ = holds.hold('copier', [...held, 'task-0'])
    {
      using _ = holds.hold('other', held)
    }
    expect(await retention.sweep()).toBe(60)
    expect(ids.filter((id) => store.has(id))).toEqual(held)
    for (const id of held) expect(readFileSync(taskDir(dataDir, id).request_path, 'utf8')).toBe(id)
    const message =
      'files of task task-0 are being copied for task copier (try again when that has started, or kill it)'
    await expect(remove()).rejects.toThrow(message)
  }
  await remove()
  expect(await retention.sweep()).toBe(59)
  expect([holds.size, ids.some((id) => store.has(id))]).toEqual([0, false])
})

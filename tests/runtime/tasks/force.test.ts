/**
 * Goal: nothing is left of a task whose launcher is dead, not even what was just being started, and a cgroup that cannot be
 * ended holds nobody up. Method: real processes with a mark; cgroups that fail.
 */
import { expect, test } from 'bun:test'
import { endCgroup, endLeftCgroups, endMarked } from '../../../runtime/tasks/force.ts'
import { TASK_MARK } from '../../../shared/request/task-mark.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { isAlive, until } from '../../support/until.ts'

const spawn = (command: string[], env: Record<string, string> = {}) =>
  Bun.spawn(command, { env, stdio: ['ignore', 'ignore', 'ignore'] })

const environmentOf = (pid: number) => Bun.file(`/proc/${pid}/environ`).text()

test('processes that carry the mark are killed, and no others', async () => {
  const mark = crypto.randomUUID()
  const marked = spawn(['/bin/sh', '-c', 'sleep 600 & wait'], { PATH: process.env.PATH!, [TASK_MARK]: mark })
  const other = spawn(['/bin/sleep', '600'], { [TASK_MARK]: `${mark}-2` })
  expect(await endMarked(mark)).toBe(true)
  expect(await marked.exited).toBe(137)
  expect(await isAlive(other.pid)).toBe(true)
  other.kill('SIGKILL')
  await other.exited
})

test('those that are found late are killed before they count as hopeless', async () => {
  const mark = crypto.randomUUID()
  const marked = spawn(['/bin/sleep', '600'], { [TASK_MARK]: mark })
  const ending = endMarked(mark, { hopelessMs: 1_000 })
  Bun.sleepSync(1_100) // as of a service that is stopped, or whose disk stalls
  expect(await ending).toBe(true)
  expect(await marked.exited).toBe(137)
})

test('one that has no environment yet is waited for, as it may be just being started', async () => {
  const mark = crypto.randomUUID()
  // Its only step from no environment leads to the mark.
  const script = `sleep 0.5; export ${TASK_MARK}=${mark}; exec /bin/sleep 600`
  const late = spawn(['/usr/bin/env', '-i', '/bin/sh', '-c', script])
  await until(() => environmentOf(late.pid), '')
  expect(await endMarked(mark, { startingMs: 10_000 })).toBe(true) // a busy machine may take a second for the exec
  expect(await late.exited).toBe(137)
})

test('those that never have one are not waited for for ever, nor killed', async () => {
  const bare = spawn(['/usr/bin/env', '-i', '/bin/sleep', '600'])
  await until(() => environmentOf(bare.pid), '')
  expect(await endMarked(crypto.randomUUID())).toBe(true)
  expect(await isAlive(bare.pid)).toBe(true)
  bare.kill('SIGKILL')
  await bare.exited
})

test('many who look at once share their looks, and nobody is held up', async () => {
  const bare = spawn(['/usr/bin/env', '-i', '/bin/sleep', '600'])
  await until(() => environmentOf(bare.pid), '')
  let turns = 0
  const turning = setInterval(() => turns++, 5)
  const start = performance.now()
  const ended = await Promise.all(Array.from({ length: 300 }, () => endMarked(crypto.randomUUID())))
  clearInterval(turning)
  expect(ended.every((isGone) => isGone)).toBe(true)
  expect([turns > 3, performance.now() - start < 10_000]).toEqual([true, true])
  bare.kill('SIGKILL')
  await bare.exited
})

const failing = (code: string) => Object.assign(new Error(`${code}: read`), { code })

/** The cgroups of four tasks: one runs, one cannot be read, and one would not go. */
function cgroups() {
  const ended: string[] = []
  const end = async (id: string) => {
    if (id === 'unreadable') throw failing('EOPNOTSUPP')
    ended.push(id)
    return id !== 'stuck'
  }
  return { ended, end, taskIds: () => ['unreadable', 'stuck', 'running', 'left'] }
}

test.each([
  ['left', true],
  ['stuck', false],
  ['unreadable', false],
])('the cgroup of a task: %s', async (id, isGone) => {
  const { log, texts } = memoryLog()
  expect(await endCgroup(cgroups(), id, log)).toBe(isGone)
  expect(texts.length).toBe(isGone ? 0 : 1)
})

test('all cgroups that were left are tried', async () => {
  const all = cgroups()
  await endLeftCgroups(all, (id) => id === 'running', memoryLog().log)
  expect(all.ended).toEqual(['stuck', 'left'])
})

test('a directory of cgroups that cannot be read is logged', async () => {
  const { log, texts } = memoryLog()
  const taskIds = () => {
    throw failing('EACCES')
  }
  await endLeftCgroups({ ...cgroups(), taskIds }, () => false, log)
  expect(texts.length).toBe(1)
})

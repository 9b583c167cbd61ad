/** Goal: of a task whose launcher is dead nothing is left, also what was just being started when somebody looked. */
import { expect, test } from 'bun:test'
import { endMarked } from '../../../runtime/dispatch/stragglers.ts'
import { TASK_MARK } from '../../../runtime/launcher/task-mark.ts'
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

test('one that has no environment yet is waited for, as it may be just being started', async () => {
  const mark = crypto.randomUUID()
  const script = `sleep 0.2; exec /usr/bin/env ${TASK_MARK}=${mark} sleep 600`
  const late = spawn(['/usr/bin/env', '-i', '/bin/sh', '-c', script])
  await until(
    () => environmentOf(late.pid),
    (environment) => environment === '',
  )
  expect(await endMarked(mark)).toBe(true)
  expect(await late.exited).toBe(137)
})

test('those that never have one are not waited for for ever, nor killed', async () => {
  const bare = spawn(['/usr/bin/env', '-i', '/bin/sleep', '600'])
  await until(
    () => environmentOf(bare.pid),
    (environment) => environment === '',
  )
  expect(await endMarked(crypto.randomUUID())).toBe(true)
  expect(await isAlive(bare.pid)).toBe(true)
  bare.kill('SIGKILL')
  await bare.exited
})

test('many who look at once share their looks, and nobody is held up', async () => {
  const bare = spawn(['/usr/bin/env', '-i', '/bin/sleep', '600'])
  await until(
    () => environmentOf(bare.pid),
    (environment) => environment === '',
  )
  let turns = 0
  const turning = setInterval(() => turns++, 5)
  const start = performance.now()
  const ended = await Promise.all(Array.from({ length: 300 }, () => endMarked(crypto.randomUUID())))
  clearInterval(turning)
  expect(ended.every((isGone) => isGone)).toBe(true)
  expect([turns > 20, performance.now() - start < 10_000]).toEqual([true, true])
  bare.kill('SIGKILL')
  await bare.exited
})

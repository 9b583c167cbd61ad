/**
 * Goal: a signal goes to the process that is meant, or to nobody. Method: processes of the test, with what the system has
 * for that and without it.
 */
import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { killEach, signalIf } from '../../../shared/process/pidfd.ts'
import { sh } from '../../support/launchers.ts'
import { until } from '../../support/until.ts'
import { withoutPidfd } from '../../support/without-pidfd.ts'

const signal = 'SIGUSR2'

const sleeper = () => Bun.spawn(['sleep', '600'], { stdio: ['ignore', 'ignore', 'ignore'] })

describe.each([
  ['by what holds on to it', undefined],
  ['by its pid, on an old kernel', withoutPidfd],
  ['by its pid, on another system', null],
] as const)('a signal to a process, %s', (_, call) => {
  test('reaches it', async () => {
    const child = sleeper()
    expect(signalIf(() => true, child.pid, signal, call)).toBe(true)
    await child.exited
    expect(child.signalCode).toBe('SIGUSR2')
  })

  test('does not reach one that is not meant', async () => {
    const child = sleeper()
    expect(signalIf(() => false, child.pid, signal, call)).toBe(false)
    child.kill('SIGTERM')
    await child.exited
    expect(child.signalCode).toBe('SIGTERM')
  })

  test('finds nobody where it has ended', async () => {
    const child = Bun.spawn(sh('exit 0'), { stdio: ['ignore', 'ignore', 'ignore'] })
    await child.exited
    expect(signalIf(() => true, child.pid, signal, call)).toBe(false)
  })

  test.each([0, 1, -1, -process.pid])('is not sent to %d: that would be many, or the first of all', (pid) => {
    expect(signalIf(() => true, pid, signal, call)).toBe(false)
  })
})

test('no descriptor stays open', async () => {
  const open = () => readdirSync('/proc/self/fd').length
  const child = sleeper()
  signalIf(() => false, child.pid, signal)
  const before = open()
  for (let i = 0; i < 10; i++) signalIf(() => false, child.pid, signal)
  signalIf(() => true, child.pid, signal)
  await child.exited
  await until(open, (count) => count <= before)
})

describe.each([
  ['by what holds on to them', undefined],
  ['by their pids', withoutPidfd],
] as const)('killing those of a list, %s', (_, call) => {
  test('spares whoever has got a pid of the list since it was made', async () => {
    const [member, stranger] = [sleeper(), sleeper()]
    // Both are on the list; when they are held on to only one is still what is meant.
    killEach([member.pid, stranger.pid], () => [member.pid], call)
    await member.exited
    expect([member.signalCode, stranger.exitCode, stranger.signalCode]).toEqual(['SIGKILL', null, null])
    stranger.kill('SIGTERM')
    await stranger.exited
    expect(stranger.signalCode).toBe('SIGTERM')
  })

  test('reaches all of a long list, and leaves no descriptor', async () => {
    const open = () => readdirSync('/proc/self/fd').length
    const members = Array.from({ length: 70 }, sleeper)
    const pids = members.map(({ pid }) => pid)
    const before = open()
    let asked = 0
    const stillMeant = () => {
      asked++
      return [...pids, 0, 1]
    }
    killEach([...pids, 0, 1], stillMeant, call)
    expect(asked).toBe(2)
    expect(open()).toBeLessThanOrEqual(before)
    await Promise.all(members.map(({ exited }) => exited))
    expect(new Set(members.map(({ signalCode }) => signalCode))).toEqual(new Set(['SIGKILL']))
  })
})

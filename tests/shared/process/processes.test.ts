/** What `/proc` says of a process whose first thread has ended: it goes on, and is no zombie. */
import { expect, test } from 'bun:test'
import { identify, isStillThere, isZombie, markedProcesses, processStat } from '../../../shared/process/processes.ts'
import { until } from '../../support/until.ts'

/** Starts a second thread, then ends the first one. */
const FIRST_THREAD_ENDS = `
  const { dlopen } = require('bun:ffi')
  const { symbols } = dlopen('libc.so.6', { syscall: { args: ['i64', 'i64'], returns: 'i64' } })
  const worker = new Worker('data:text/javascript,postMessage(0); setInterval(() => {}, 1000)')
  worker.onmessage = () => symbols.syscall(process.arch === 'x64' ? 60 : 93, 0)`

test('a process whose first thread has ended is still there, and found by its environment', async () => {
  const mark = `TASKMILL_MARK=${crypto.randomUUID()}`
  const [name, value] = mark.split('=') as [string, string]
  const child = Bun.spawn([process.execPath, '-e', FIRST_THREAD_ENDS], {
    env: { ...process.env, [name]: value },
    stdin: 'ignore',
  })
  const { pid } = child
  const identity = identify(pid)!
  try {
    const stat = await until(
      () => processStat(pid),
      (found) => found?.state === 'Z',
    )
    expect(stat!.threads).toBeGreaterThan(1)
    expect([isZombie(stat!), isStillThere(identity), markedProcesses(mark)]).toEqual([false, true, [pid]])
  } finally {
    child.kill('SIGKILL')
    await child.exited
  }
  expect([isStillThere(identity), markedProcesses(mark)]).toEqual([false, []])
})

/** The CPU time of a process never falls, whichever of its threads ends. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { cpuMs } from '../../bench/process-stats.ts'
import { until } from '../support/until.ts'

test('the CPU time of an ended thread still counts', async () => {
  const threads = () => readdirSync('/proc/self/task').length
  const worker = new Worker(
    'data:text/javascript,for (let i = 0; i < 3e8; i++); postMessage(0); setInterval(() => {}, 1e6)',
  )
  await new Promise((resolve) => worker.addEventListener('message', resolve, { once: true }))
  const before = cpuMs(process.pid)
  const threadsBefore = threads()
  worker.terminate()
  await until(threads, (count) => count < threadsBefore)
  expect(cpuMs(process.pid)).toBeGreaterThanOrEqual(before)
})

test('a process that is not there has no CPU time', () => {
  expect(() => cpuMs(0x3ffffff)).toThrow('no process 67108863')
})

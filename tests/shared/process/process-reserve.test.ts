/** The processes that tasks may have of those of the user, and that what they start has no more from its first moment. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { MAX_RESERVED_PROCESSES, processesOfTasks, startBelowReserve } from '../../../shared/process/process-reserve.ts'
import { processLimitIn } from '../../support/process-limit.ts'

const UNLIMITED = 2n ** 64n - 1n

test.each([
  [0n, 0n],
  [3n, 3n],
  [100n, 75n],
  [256n, 192n],
  [257n, 193n],
  [127_000n, 127_000n - BigInt(MAX_RESERVED_PROCESSES)],
  [UNLIMITED, UNLIMITED],
])('of %p tasks may have %p', (limit, tasks) => expect(processesOfTasks(limit)).toBe(tasks))

const isLinux = process.platform === 'linux'

test.skipIf(!isLinux)(
  'a process below the reserve has the lower limit at once, and the service keeps its own',
  async () => {
    const own = readFileSync('/proc/self/limits', 'utf8')
    const child = startBelowReserve(() => Bun.spawn(['cat', '/proc/self/limits'], { stdout: 'pipe' }))
    expect(processLimitIn(await child.stdout.text())).toBe(processesOfTasks(processLimitIn(own)))
    expect(readFileSync('/proc/self/limits', 'utf8')).toBe(own)
  },
)

test.skipIf(!isLinux)('the service has its own limit again when a start fails', () => {
  const own = readFileSync('/proc/self/limits', 'utf8')
  expect(() => startBelowReserve(() => Bun.spawn(['/nonexistent']))).toThrow('ENOENT')
  expect(readFileSync('/proc/self/limits', 'utf8')).toBe(own)
})

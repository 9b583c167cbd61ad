/**
 * Goal: a refused write gets the space of the reserve, is always repeated later, and ends no failure by itself.
 * Method: a real reserve, and writes that fail as a full disk would.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DiskHealth } from '../../../control/log/disk-health.ts'
import { DiskReserve } from '../../../shared/files/disk-reserve.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { tempDir } from '../../support/temp.ts'

function diskIn(dataDir: string) {
  const calls = { failures: 0, writes: 0 }
  const reserve = new DiskReserve(dataDir)
  const useReserve = () => reserve.exists && reserve.moveTo(join(dataDir, 'segment')) > 0
  const health = new DiskHealth(reserve, silentLog(), useReserve, () => calls.failures++)
  const hasReserve = () => existsSync(join(dataDir, 'reserve'))
  /** Fails as often as the disk is full, then succeeds. */
  const writeFailing = (times: number) => () => {
    if (calls.writes++ < times) throw new Error('ENOSPC')
  }
  return { health, calls, hasReserve, writeFailing }
}

describe('a refused write', () => {
  test('succeeds with the space of the reserve, and the failure lasts until the reserve is restored', () => {
    using dir = tempDir()
    const { health, calls, hasReserve, writeFailing } = diskIn(dir.path)
    health.writeWithReserve(writeFailing(1))
    expect({ ...calls, hasReserve: hasReserve(), isPaused: health.isPaused }).toEqual({
      ...{ failures: 1, writes: 2, hasReserve: false, isPaused: false },
    })
    expect(health.failure?.message).toBe('ENOSPC')
    expect(health.recover()).toBe(true)
    expect({ failure: health.failure, hasReserve: hasReserve() }).toEqual({ failure: undefined, hasReserve: true })
    expect(health.recover()).toBe(false)
  })

  test('that fails with the reserve as well is thrown, and the disk is left alone for a while', () => {
    using dir = tempDir()
    const { health, calls, writeFailing } = diskIn(dir.path)
    expect(() => health.writeWithReserve(writeFailing(2))).toThrow('ENOSPC')
    expect({ ...calls, isPaused: health.isPaused }).toEqual({ failures: 1, writes: 2, isPaused: true })
    expect(() => health.writeWithReserve(writeFailing(3))).toThrow('ENOSPC')
    expect(calls).toEqual({ failures: 2, writes: 3 }) // there is no reserve any more
  })
})

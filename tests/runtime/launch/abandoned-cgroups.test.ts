/** Goal: a start beside running services starts no thread to look at their groups. */
import { afterEach, expect, spyOn, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { ownRecord, writeRecord } from '../../../runtime/host/cgroup-record.ts'
import { removeAbandonedCgroups } from '../../../runtime/launch/abandoned-cgroups.ts'
import { tempDir } from '../../support/temp.ts'

class DeadThread {
  onerror: ((event: { message: string }) => void) | undefined
  postMessage(): void {
    queueMicrotask(() => this.onerror?.({ message: 'a thread was started' }))
  }
  terminate(): void {}
}

const threads = spyOn(globalThis, 'Worker').mockImplementation((() => new DeadThread()) as never)
afterEach(() => {
  threads.mockRestore()
})

test('the groups of a service that runs need no thread, all others do', async () => {
  using dir = tempDir()
  const group = join(dir.path, '1-2')
  mkdirSync(group)
  const running = ownRecord('/nowhere')
  const home = { directories: { pids: dir.path }, serviceId: '1-1' }

  writeRecord(group, running)
  expect(await removeAbandonedCgroups(home)).toEqual({ removed: 0, unanswered: [] })
  expect(threads).not.toHaveBeenCalled()

  writeRecord(group, { ...running, process: { ...running.process!, pid: 2 ** 22 + 1 } })
  await expect(removeAbandonedCgroups(home)).rejects.toThrow('a thread was started')
  expect(threads).toHaveBeenCalledTimes(1)
})

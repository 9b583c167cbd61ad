/** System V IPC objects that a user has left. */
import { expect, test } from 'bun:test'
import { removeIpcObjects } from '../../../runtime/host/ipc-objects.ts'
import { readText } from '../../../runtime/host/read-text.ts'
import { loadLibc } from '../../../shared/process/libc.ts'
import { ownUid } from '../../support/ordinary-user.ts'

const libc = loadLibc({
  shmat: { args: ['i32', 'ptr', 'i32'], returns: 'ptr' },
  shmdt: { args: ['ptr'], returns: 'i32' },
} as const)

const skip = process.getuid?.() !== 0 || libc === null
const why = skip ? ' (skipped: needs root)' : ''

test.skipIf(skip)(`a segment that another process has attached counts as removed${why}`, async () => {
  const UID = ownUid(55_000)
  const make = ['perl', '-e', 'print shmget(0, 4096, 01666) // die $!']
  const id = Number(await Bun.$`setpriv --reuid ${UID} --clear-groups ${make}`.text())
  const attached = libc!.shmat(id, null, 0)!
  const isListed = () => (readText('/proc/sysvipc/shm') ?? '').includes(` ${UID} `)
  try {
    removeIpcObjects(UID)
    expect(isListed()).toBe(true)
  } finally {
    libc!.shmdt(attached)
  }
  expect(isListed()).toBe(false)
})

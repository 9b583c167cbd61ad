import { expect, test } from 'bun:test'
import { writeRemedy } from '../../../shared/files/write-remedy.ts'

test.each([
  ['ENOSPC', 'free some space, or inodes, on its disk'],
  ['EDQUOT', 'free some space, or raise the quota of the user of the service'],
  ['EROFS', 'mount its file system for writing'],
  ['EIO', 'look for faults of its disk in the log of the kernel'],
  ['EACCES', 'let the user of the service write there'],
])('%s has the remedy: %s', (code, remedy) => {
  expect(writeRemedy(Object.assign(new Error('no'), { code }))).toBe(remedy)
})

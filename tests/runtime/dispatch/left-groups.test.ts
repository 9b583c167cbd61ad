/** Goal: a control group that cannot be ended, for whatever reason, holds nobody up and is told of. Method: groups that fail. */
import { expect, test } from 'bun:test'
import { endGroup, endLeftGroups } from '../../../runtime/dispatch/left-groups.ts'
import { memoryLog } from '../../support/memory-log.ts'

const failing = (code: string) => Object.assign(new Error(`${code}: read`), { code })

/** Those of four tasks, of which one runs, one cannot be read, and one would not go. */
function groups() {
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
])('the group of one: %s', async (id, isGone) => {
  const { log, texts } = memoryLog()
  expect(await endGroup(groups(), id, log)).toBe(isGone)
  expect(texts.length).toBe(isGone ? 0 : 1)
})

test('all that were left are tried', async () => {
  const all = groups()
  await endLeftGroups(all, (id) => id === 'running', memoryLog().log)
  expect(all.ended).toEqual(['stuck', 'left'])
})

test('a directory of groups that cannot be read is told of', async () => {
  const { log, texts } = memoryLog()
  const taskIds = () => {
    throw failing('EACCES')
  }
  await endLeftGroups({ ...groups(), taskIds }, () => false, log)
  expect(texts.length).toBe(1)
})

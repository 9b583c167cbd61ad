import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { POOL_FILE, PoolFile, readPoolFile } from '../../../control/log/pool-file.ts'
import { withDrained } from '../../../control/rules/pool-state.ts'
import { tempDir } from '../../support/temp.ts'

const flags = { configured: [{ name: 'a', url: 'http://a:1', labels: {} }] }

test('a file keeps since when, by whom and why a runtime service is drained', async () => {
  using dir = tempDir()
  const drain = { since: 5, by: 'ops', why: 'a fan' }
  await new PoolFile(dir.path).change((state) => withDrained(flags, state, 'a', drain))
  expect(new PoolFile(dir.path).state.draining).toEqual(new Map([['a', drain]]))
})

test('a file of an earlier version has only names', () => {
  using dir = tempDir()
  const path = join(dir.path, POOL_FILE)
  const file = { added: [], draining: ['a'], removed: [], lost: [], losses: [] }
  writeFileSync(path, JSON.stringify(file))
  expect(readPoolFile(path).draining).toEqual(new Map([['a', { since: 0 }]]))
  writeFileSync(path, JSON.stringify({ ...file, drains: [['a', { since: 'long ago' }]] }))
  expect(() => readPoolFile(path)).toThrow('it does not hold what it should')
})

/** Files of large results: each has a name of its own, whatever became of the positions of tasks. */
import { expect, spyOn, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ResultFiles } from '../../../control/log/result-files.ts'
import { ResultFile } from '../../../control/rules/result-file.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { graphOf } from '../../support/graph.ts'
import { tempDir } from '../../support/temp.ts'

const LARGE = 'x'.repeat(200_000)

test('two tasks that had the same position, one after the other, do not share a file', async () => {
  using dir = tempDir()
  const files = new ResultFiles(dir.path, [], silentLog())
  const [task] = graphOf([{ id: 'a', type: 'test' }]).tasks
  const earlier = (await files.keep(task!, LARGE)) as ResultFile
  const later = (await files.keep(task!, LARGE)) as ResultFile
  const input = (await files.keepInput(task!, LARGE))!
  expect(new Set([earlier.name, later.name, input.name]).size).toBe(3)
  files.drop(earlier)
  await files.remove(files.takeDropped())
  expect(readdirSync(join(dir.path, 'results')).toSorted()).toEqual([later.name, input.name].toSorted())
  for (const kept of [later, input]) {
    expect(kept).toBeInstanceOf(ResultFile)
    expect(await files.read(kept)).toEqual({ json: JSON.stringify(LARGE) })
  }
})

test('a result in pieces is written whole, and no more than a MiB of it is handled at a time', async () => {
  using dir = tempDir()
  const files = new ResultFiles(dir.path, [], silentLog())
  const [task] = graphOf([{ id: 'a', type: 'test' }]).tasks
  // No part may end between the two halves of such a character, whether it begins at an even or at an odd place.
  const pieces = ['["', '😀'.repeat(400_000), '","x', '😀'.repeat(400_000), '","', 'x'.repeat(16_000_000), '"]']
  using checksum = spyOn(Bun.hash, 'crc32')
  const file = (await files.keepJson(task!, pieces))!
  const sizes = checksum.mock.calls.map(([bytes]) => (bytes as Uint8Array).length)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(Buffer.byteLength(pieces.join('')))
  expect(Math.max(...sizes)).toBeLessThanOrEqual(1024 * 1024)
  const again = (await files.keepJson(task!, pieces))!
  expect(again.name).not.toBe(file.name)
  expect(readdirSync(join(dir.path, 'results')).toSorted()).toEqual([file.name, again.name].toSorted())
  for (const kept of [file, again]) expect(await files.read(kept)).toEqual({ json: pieces.join('') })
})

test('a start removes what a crash left of a result in pieces', async () => {
  using dir = tempDir()
  const results = join(dir.path, 'results')
  mkdirSync(results)
  for (const name of ['large-1.new', '1-0-1-00000000.json', 'of-somebody-else.new'])
    writeFileSync(join(results, name), '')
  const files = new ResultFiles(dir.path, [], silentLog())
  expect(readdirSync(results)).toEqual(['of-somebody-else.new'])
  const [task] = graphOf([{ id: 'a', type: 'test' }]).tasks
  expect(await files.read((await files.keepJson(task!, ['[', '1', ']']))!)).toEqual({ json: '[1]' })
})

test('a result in pieces that the disk refuses leaves no file', async () => {
  using dir = tempDir()
  const files = new ResultFiles(dir.path, [], silentLog())
  const results = join(dir.path, 'results')
  const [task] = graphOf([{ id: 'a', type: 'test' }]).tasks
  mkdirSync(join(results, 'large-1.new')) // stands for a disk that takes no file
  expect(await files.keepJson(task!, ['[', '1', ']'])).toBeUndefined()
  expect(readdirSync(results)).toEqual(['large-1.new'])
})

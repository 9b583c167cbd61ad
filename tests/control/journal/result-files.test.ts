/** Files of large results: each has a name of its own, whatever became of the positions of tasks. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { ResultFile } from '../../../control/graph/result-file.ts'
import { ResultFiles } from '../../../control/journal/result-files.ts'
import { silentLog } from '../../../shared/log.ts'
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

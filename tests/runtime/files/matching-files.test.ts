/** Goal: a walk that is over reads no further. Method: the steps of walks through a large directory are counted. */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openTop, type Visitor, visitMatches } from '../../../runtime/files/matching-files.ts'
import { OutputPatterns } from '../../../runtime/plan/output-patterns.ts'
import { runSync, type Steps } from '../../../shared/process/steps.ts'
import { tempDir } from '../../support/temp.ts'

/** Making files takes long on some disks. */
const MEMORY = '/dev/shm'

const FILES = 5_000

function* counted(work: Steps<void>): Steps<number> {
  let steps = 0
  for (const _ of work) {
    steps++
    yield
  }
  return steps
}

test.each<[string, Pick<Visitor, 'isReadOnly'>, number, number]>([
  ['only looks at files visits them at once, and ends', { isReadOnly: true }, 10, 20],
  ['only looks at files visits all of them', { isReadOnly: true }, FILES, 2 * FILES],
  ['may move files visits all of them', {}, FILES, 3 * FILES],
])('a walk that %s', (_, kind, limit, maxSteps) => {
  using temp = tempDir(existsSync(MEMORY) ? MEMORY : undefined)
  const top = join(temp.path, 'top')
  mkdirSync(join(top, 'd'), { recursive: true })
  for (let i = 0; i < FILES; i++) writeFileSync(join(top, `d/${i}`), '')
  using opened = openTop(top)!
  const names = new Set<string>()
  const visitor: Visitor = {
    ...kind,
    directory: () => {},
    file: (_, name) => void names.add(name.toString()),
    get isOver() {
      return names.size > limit
    },
  }
  const steps = runSync(counted(visitMatches(opened, new OutputPatterns(['d/**']), visitor)))
  expect(names.size).toBe(Math.min(limit + 1, FILES))
  expect(steps).toBeLessThan(maxSteps)
})

/** Goal: a large workspace is reduced in steps. The rest is tested with real tasks (`tests/contract/runtime-outputs.test.ts`). */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepFiles } from '../../../runtime/files/kept-files.ts'
import { discard, taskDir } from '../../../runtime/files/task-dir.ts'
import { OutputPatterns } from '../../../runtime/plan/output-patterns.ts'
import { linkOf } from '../../support/task-processes.ts'
import { tempDir } from '../../support/temp.ts'

/** Making files takes long on some disks. */
const MEMORY = '/dev/shm'

const DIRECTORIES = 100
const FILES = 100

const OTHER_USER = 54_321

function workspace() {
  const temp = tempDir(existsSync(MEMORY) ? MEMORY : undefined)
  const dir = taskDir(temp.path, 't')
  for (let d = 0; d < DIRECTORIES; d++) {
    mkdirSync(join(dir.workspace, `d${d}`), { recursive: true })
    for (let f = 0; f < FILES; f++) writeFileSync(join(dir.workspace, `d${d}/f${f}`), '')
  }
  const discarded: string[] = []
  const limits = { files: DIRECTORIES * FILES, bytes: 1_000 }
  const reduction = (...patterns: string[]) => ({
    ...{ dir, limits, patterns: new OutputPatterns(patterns), close: () => {} },
    discard: (path: string | Buffer): void => void discarded.push(discard(temp.path, path)),
  })
  const reduce = (...patterns: string[]) => keepFiles(reduction(...patterns))
  return { ...temp, dir, discarded, reduction, reduce, [Symbol.dispose]: () => temp[Symbol.dispose]() }
}

/** Counts turns of the event loop while `work` goes on, and opened descriptors after it. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0
  let isOver = false
  const count = () => {
    turns++
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await work
  isOver = true
  return turns
}

/** What is open at or below `path`: other tests may have left something open elsewhere, which closes at any time. */
const openBelow = (path: string): string[] =>
  readdirSync('/proc/self/fd')
    .map((fd) => linkOf(`/proc/self/fd/${fd}`))
    .filter((target) => target.startsWith(path))

test.each([
  ['everything is kept', '**', DIRECTORIES * FILES],
  ['little is kept', '**/f7', DIRECTORIES],
])('the event loop turns while %s, and no descriptor stays open', async (_, pattern, files) => {
  using made = workspace()
  const reducing = made.reduce(pattern)
  expect(await turnsDuring(reducing)).toBeGreaterThan(1) // in one piece, it would be one
  expect(await reducing).toEqual({ kept: { files, bytes: 0 } })
  expect(openBelow(made.path)).toEqual([])
  expect(readdirSync(made.dir.workspace).length).toBe(DIRECTORIES)
  expect(made.discarded.length).toBe(1)
})

test('twice is as good as once', async () => {
  using made = workspace()
  const kept = { kept: { files: FILES, bytes: 0 } }
  expect([await made.reduce('d1/**'), await made.reduce('d1/**')]).toEqual([kept, kept])
  expect(readdirSync(made.dir.workspace)).toEqual(['d1'])
  expect(existsSync(join(made.dir.task_dir, 'kept'))).toBe(false)
})

test('the directory is closed once all is moved, before the owner of the workspace could reach it', async () => {
  using made = workspace()
  const isRoot = process.getuid?.() === 0
  if (isRoot) Bun.spawnSync(['chown', '-R', String(OTHER_USER), made.dir.workspace])
  const kept = join(made.dir.task_dir, 'kept')
  const found: unknown[] = []
  const close = () => found.push(readdirSync(join(kept, 'd1')).length, statSync(kept).uid)
  await keepFiles({ ...made.reduction('d1/**'), close })
  expect(found).toEqual([FILES, process.getuid!()])
  if (isRoot) expect(statSync(made.dir.workspace).uid).toBe(OTHER_USER)
})

const pathsIn = (path: string) => readdirSync(path, { recursive: true, encoding: 'utf8' }).toSorted()

describe('after an error all files are where they were', () => {
  const noRoom = () => {
    throw new Error('no room')
  }

  test('when all are moved, and the workspace cannot be replaced', async () => {
    using made = workspace()
    const all = pathsIn(made.dir.workspace)
    const keeping = keepFiles({ ...made.reduction('d1/**', '**/f7'), discard: noRoom })
    expect(await keeping.catch(String)).toBe('Error: no room')
    expect(pathsIn(made.dir.workspace)).toEqual(all)
    expect(existsSync(join(made.dir.task_dir, 'kept'))).toBe(false)
    expect(openBelow(made.path)).toEqual([])
  })

  test('when the old workspace is gone already', async () => {
    using made = workspace()
    const discard = (path: string | Buffer) => {
      rmSync(path, { recursive: true })
      noRoom()
    }
    await keepFiles({ ...made.reduction('d1/**'), discard }).catch(() => {})
    expect(readdirSync(made.dir.workspace)).toEqual(['d1'])
    expect(existsSync(join(made.dir.task_dir, 'kept'))).toBe(false)
  })

  test('when an earlier service has moved some, and now there is too much', async () => {
    using made = workspace()
    const all = pathsIn(made.dir.workspace)
    const kept = join(made.dir.task_dir, 'kept')
    mkdirSync(kept)
    renameSync(join(made.dir.workspace, 'd5'), join(kept, 'd5'))
    expect(await keepFiles({ ...made.reduction('**'), limits: { files: 9, bytes: 9 } })).toEqual({ tooMuch: 'files' })
    expect(pathsIn(made.dir.workspace)).toEqual(all)
    expect(existsSync(kept)).toBe(false)
  })

  test('unless something is in their place: then the message says where they are', async () => {
    using made = workspace()
    const kept = join(made.dir.task_dir, 'kept')
    mkdirSync(join(kept, 'd5'), { recursive: true })
    writeFileSync(join(kept, 'd5/file'), '')
    rmSync(join(made.dir.workspace, 'd5'), { recursive: true })
    writeFileSync(join(made.dir.workspace, 'd5'), '')
    const keeping = keepFiles({ ...made.reduction('d1/**'), discard: noRoom })
    expect(await keeping.catch(String)).toContain('they are in the directory kept of the task')
    expect(pathsIn(kept)).toEqual(['d5', 'd5/file'])
  })
})

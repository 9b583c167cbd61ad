/**
 * Goal: the end of a process that has not started removes the directory it made, and nothing else ever.
 * Method: processes of the test, which put files into it and end.
 */
import { expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '../../support/temp.ts'

const MODULE = join(import.meta.dir, '../../../shared/files/new-directory.ts')

const LOCKS = join(import.meta.dir, '../../../shared/files/directory-lock.ts')

/** Makes `directory`, and in it what `content` does, in a process that ends then. */
function endOfStart(directory: string, content: string): void {
  const program = `
    import { mkdirSync, writeFileSync } from 'node:fs'
    import { makeDirectory, removeUnlessStarted } from ${JSON.stringify(MODULE)}
    const directory = ${JSON.stringify(directory)}
    const keep = removeUnlessStarted(makeDirectory(directory), 'lock')
    const file = (name) => writeFileSync(directory + '/' + name, 'x')
    const subdirectory = (name) => mkdirSync(directory + '/' + name, { recursive: true })
    ${content}
    process.exit(2)`
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, '-e', program])
  expect([exitCode, stderr.toString()]).toEqual([2, ''])
}

test.each([
  ['nothing', ''],
  ['what a start puts there', "file('lock'); file('reserve'); file('runtime.db-wal'); subdirectory('results')"],
])('with %s in it, it goes', (_, content) => {
  using dir = tempDir()
  endOfStart(join(dir.path, 'a', 'b'), content)
  expect(readdirSync(dir.path)).toEqual([])
})

test.each([
  ['a file of somebody else', "file('lock'); file('notes.txt')", ['lock', 'notes.txt']],
  ['a directory of somebody else', "file('lock'); subdirectory('mine')", ['lock', 'mine']],
  ['a directory that holds something', "subdirectory('tasks/x'); file('lock')", ['lock', 'tasks']],
  ['a state', "file('state.json'); file('lock')", ['lock', 'state.json']],
])('with %s in it, all of it stays', (_, content, left) => {
  using dir = tempDir()
  endOfStart(join(dir.path, 'a', 'b'), content)
  expect(readdirSync(join(dir.path, 'a', 'b')).sort()).toEqual(left)
})

test('it stays while a service of another kind has it', () => {
  using dir = tempDir()
  const other = `import(${JSON.stringify(LOCKS)}).then((m) => m.lockDirectory(directory, 'runtime.lock'))`
  endOfStart(join(dir.path, 'a'), `await ${other}; file('lock')`)
  expect(readdirSync(join(dir.path, 'a')).sort()).toEqual(['lock', 'runtime.lock'])
})

test('it stays when it was there, and once the service has started', () => {
  using dir = tempDir()
  endOfStart(dir.path, '')
  endOfStart(join(dir.path, 'kept'), 'keep()')
  expect(readdirSync(dir.path)).toEqual(['kept'])
  expect(existsSync(join(dir.path, 'kept'))).toBe(true)
})

/**
 * Goal: the C programs that are checked in were built from the sources beside them. Method: the hashes that `make launcher`
 * wrote with both; it takes no compiler.
 */
import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join, normalize } from 'node:path'
import { runRuntime } from '../../support/runtime-command.ts'

const RUNTIME = join(import.meta.dir, '../../../runtime')

/** The hash of each file, by its path below the folder. */
function recordedHashes(folder: string): Map<string, string> {
  const lines = readFileSync(join(RUNTIME, folder, 'bin/SOURCES.sha256'), 'utf8')
    .trimEnd()
    .split('\n')
  const hashes = lines.filter((line) => !line.startsWith('#')).map((line) => line.split('  ') as [string, string])
  return new Map(hashes.map(([hash, path]) => [normalize(path), hash]))
}

describe.each([
  ['launch', 'launcher', 'c/**/*.[ch]', ['Makefile']],
  ['escape', 'escape', '*.[ch]', ['../launch/Makefile', 'Makefile']],
])('what is checked in of %s', (folder, program, sources, makefiles) => {
  const recorded = recordedHashes(folder)
  const below = (pattern: string) => [...new Bun.Glob(pattern).scanSync({ cwd: join(RUNTIME, folder) })]

  test('was built from all of the sources, and from nothing else', () => {
    const binaries = ['arm64', 'x64'].map((arch) => `bin/taskmill-${program}-linux-${arch}`)
    expect([...recorded.keys()].toSorted()).toEqual([...makefiles, ...binaries, ...below(sources)].toSorted())
  })

  test('was built from them as they are: run make launcher after each change', () => {
    const hashOf = (path: string) =>
      new Bun.CryptoHasher('sha256').update(readFileSync(join(RUNTIME, folder, path))).digest('hex')
    expect([...recorded].filter(([path, hash]) => hashOf(path) !== hash).map(([path]) => path)).toEqual([])
  })
})

test('doctor prints the hash of the launcher in the executable', async () => {
  const { stdout } = await runRuntime(['doctor'])
  const hash = recordedHashes('launch').get(`bin/taskmill-launcher-${process.platform}-${process.arch}`)
  expect(stdout).toContain(
    `\nlauncher: ${hash === undefined ? 'portable, as there is none for this platform' : `sha256 ${hash}`}\n`,
  )
})

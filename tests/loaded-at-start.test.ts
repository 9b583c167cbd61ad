/** What a program loads: each module that a start evaluates costs every start. Follows the static imports of our files. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const ROOT = dirname(import.meta.dir)

/** The files that `entry` loads, from the root, and the names of the modules that are not ours. */
function loadedBy(entry: string): { readonly files: readonly string[]; readonly modules: readonly string[] } {
  const files = new Set([entry])
  const modules = new Set<string>()
  for (const file of files) {
    if (!file.endsWith('.ts')) continue
    const text = readFileSync(join(ROOT, file), 'utf8').replace(" with { type: 'macro' }", '') // which would run
    for (const { kind, path } of new Bun.Transpiler({ loader: 'ts' }).scanImports(text)) {
      if (kind !== 'import-statement') continue
      if (path.startsWith('.')) files.add(normalize(join(dirname(file), path)))
      else modules.add(path)
    }
  }
  return { files: [...files].sort(), modules: [...modules].sort() }
}

test('a service tells its version before it loads anything else', () => {
  for (const program of ['control', 'runtime']) {
    const { files, modules } = loadedBy(`${program}/main.ts`)
    expect(files).toEqual(
      ['package.json', `${program}/main.ts`, 'shared/process/build-info.ts', 'shared/process/version.ts'].sort(),
    )
    expect(modules).toEqual([])
  }
})

test('the client tells its version before it loads a subcommand', () => {
  expect(loadedBy('adapter/main.ts').files.filter((file) => file.startsWith('adapter/commands/'))).toEqual([])
})

/** Modules of Bun that take 3 to 6 ms of CPU time each. */
const SLOW_MODULES = [
  'node:crypto',
  'node:http',
  'node:https',
  'node:net',
  'node:stream',
  'node:tls',
  'node:tty',
  'node:zlib',
]

test.each([
  ['control', 'control/serve.ts'],
  ['the runtime service', 'runtime/serve/serve.ts'],
  ['the client', 'adapter/command-line.ts'],
])('%s starts without slow modules', (_, entry) => {
  expect(loadedBy(entry).modules.filter((name) => SLOW_MODULES.includes(name))).toEqual([])
})

test.each([
  ['control', 'control/command-line.ts'],
  ['the runtime service', 'runtime/command-line.ts'],
])('%s prints its help without what a service needs', (_, entry) => {
  const { modules } = loadedBy(entry)
  expect(modules.filter((name) => name === 'elysia' || name.startsWith('node:'))).toEqual([])
})

test.each([
  ['the client', 'adapter/command-line.ts'],
  ['the help of control', 'control/command-line.ts'],
])('%s needs no schemas', (_, entry) => {
  expect(loadedBy(entry).modules).not.toContain('@sinclair/typebox')
})

test('control loads what speaks to PostgreSQL only for a database', () => {
  const found = loadedBy('control/service.ts').files.filter((file) => file.startsWith('control/log/postgres/'))
  expect(found).toEqual(['control/log/postgres/database-addresses.ts', 'control/log/postgres/database-url.ts'])
})

test('control loads what reads cron expressions only for a schedule', () => {
  expect(loadedBy('control/service.ts').modules).not.toContain('croner')
})

test('the runtime service loads what makes certificates only for a task that needs one', () => {
  expect(loadedBy('runtime/serve/parts.ts').modules).not.toContain('@peculiar/x509')
})

/**
 * Checks the layout: reads our imports for the arrows of who may use whom, and the tree of CONTRIBUTING.md.
 *
 * Within a service arrows point from `main` towards the pure folders and may skip a step, never turn back. Programs meet
 * only on the wire: `control`, `runtime` and `adapter` import `shared` and themselves, `shared` imports none of them,
 * `client` imports itself and the few parts of `shared` that run anywhere,
 * nothing imports tests. A custom executor is written against `control/executors`. The includes of the launcher's C
 * follow arrows of their own. The dashboard runs in a browser: it imports itself and types of the contract.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'

const ROOT = dirname(import.meta.dir)

/** Folders of each program from the outermost to the innermost; those of one step do not know each other. */
const STEPS: Readonly<Record<string, readonly (readonly string[])[]>> = {
  control: [
    ['main.ts'],
    ['command-line.ts'],
    ['serve.ts', 'commands'],
    ['service.ts'],
    ['http', 'parts.ts', 'fault-exit.ts'],
    ['dashboard'],
    ['mcp-server'],
    ['operations'],
    ['scheduler', 'adapter-v1'],
    ['executors'],
    ['mcp-client', 'callbacks', 'schedules', 'tracing'],
    ['log'],
    ['task'],
    ['rules', 'config.ts'],
    ['json', 'outbound'],
  ],
  runtime: [
    ['main.ts'],
    ['command-line.ts'],
    ['commands'],
    ['serve'],
    ['http'],
    ['tasks', 'escape'],
    ['portable', 'egress'],
    ['launch'],
    ['store'],
    ['files', 'host'],
    ['config.ts'],
    ['plan', 'ledger'],
    ['refusal.ts'],
  ],
  adapter: [
    ['main.ts'],
    ['command-line.ts'],
    ['commands', 'print.ts'],
    ['doctor'],
    ['start', 'bridge', 'follow', 'graph-file', 'secrets', 'tokens-file', 'help.ts', 'warnings.ts'],
    ['brief.ts'],
    ['common-settings.ts', 'probe.ts', 'addresses.ts', 'own-command.ts'],
    ['client.ts', 'called-service.ts'],
    ['own-services'],
    ['host-config.ts', 'envelope.ts'],
    ['host-file', 'table', 'shell-words.ts', 'terminal.ts'],
  ],
  client: [
    ['testing', 'entry.ts'],
    ['client.ts'],
    ['event-reader.ts', 'file-reader.ts', 'log-reader.ts'],
    ['outage.ts', 'connection.ts', 'references.ts'],
    ['errors.ts', 'contract.ts'],
  ],
}

/** What the client shares. All of it runs in browsers, and none of it has a dependency. */
const CLIENT_PARTS = [
  'shared/http/certain-failures.ts',
  'shared/contract/task-status.ts',
  'shared/http/growing-pause.ts',
  'shared/http/socket-address.ts',
  'shared/streams',
]

/** What files of a folder may import from; the longest name that fits counts. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  control: ['control', 'shared'],
  'control/dashboard': ['control/dashboard', 'shared/contract'],
  runtime: ['runtime', 'shared'],
  adapter: ['adapter', 'shared'],
  client: ['client', ...CLIENT_PARTS],
  'client/contract.ts': ['shared/contract'], // types only
  shared: ['shared', 'package.json'],
  scripts: ['scripts', 'shared', 'control', 'runtime', 'adapter', 'client'],
  examples: ['examples', 'shared', 'scripts'],
  'examples/demo-cluster': ['examples', 'shared', 'scripts', 'client/testing'],
  'examples/executors': ['examples/executors', 'shared', 'control/executors'],
  bench: ['bench', 'shared', 'scripts'],
}

const sources = [
  ...new Bun.Glob('{control,runtime,adapter,client,shared,scripts,examples,bench}/**/*.{ts,tsx}').scanSync({
    cwd: ROOT,
  }),
]

/** Paths, from the root, of the project's own files that `file` imports. */
function importsOf(file: string): string[] {
  const text = readFileSync(join(ROOT, file), 'utf8').replace(" with { type: 'macro' }", '') // which would run
  const { imports } = new Bun.Transpiler({ loader: file.endsWith('x') ? 'tsx' : 'ts' }).scan(text) // leaves imports of types out
  const named = [...text.matchAll(/ from '(\.[^']+)'/g)].map(([, path]) => path!)
  const paths = new Set([...imports.map(({ path }) => path), ...named])
  return [...paths].filter((path) => path.startsWith('.')).map((path) => normalize(join(dirname(file), path)))
}

const stepOf = (file: string): number | undefined => {
  const [program, room] = file.split('/') as [string, string]
  const step = STEPS[program]?.findIndex((rooms) => rooms.includes(room)) ?? -1
  return step < 0 ? undefined : step
}

const isIn = (folder: string, file: string) => file === folder || file.startsWith(`${folder}/`)

test('every program imports only itself and shared', () => {
  const wrong = sources.flatMap((file) => {
    const folders = Object.keys(MAY_IMPORT).filter((folder) => isIn(folder, file))
    const allowed = MAY_IMPORT[folders.toSorted((a, b) => b.length - a.length)[0]!]!
    return importsOf(file)
      .filter((imported) => !allowed.some((folder) => isIn(folder, imported)))
      .map((imported) => `${file} -> ${imported}`)
  })
  expect(wrong).toEqual([])
})

test('arrows within a program never turn back', () => {
  const wrong = sources.flatMap((file) => {
    const from = stepOf(file)
    if (from === undefined) return []
    return importsOf(file).flatMap((imported) => {
      if (imported.split('/')[0] !== file.split('/')[0]) return []
      const to = stepOf(imported)
      const isSameRoom = imported.split('/')[1] === file.split('/')[1]
      return to !== undefined && (to > from || isSameRoom) ? [] : [`${file} -> ${imported}`]
    })
  })
  expect(wrong).toEqual([])
})

/** Folders of the launcher's C from the outermost to the innermost. */
const C_STEPS = ['main.c', 'server', 'supervise', 'sandbox', 'base']

test('no files import each other in a circle, not even types', () => {
  const circles: string[] = []
  const path: string[] = []
  const isDone = new Set<string>()
  const visit = (file: string) => {
    if (path.includes(file)) circles.push([...path.slice(path.indexOf(file)), file].join(' -> '))
    if (path.includes(file) || isDone.has(file)) return
    path.push(file)
    if (/\.tsx?$/.test(file)) for (const imported of importsOf(file)) visit(imported)
    path.pop()
    isDone.add(file)
  }
  for (const file of sources) visit(file)
  expect(circles).toEqual([])
})

test("arrows within the launcher's C never turn back", () => {
  const root = join(ROOT, 'runtime/launch/c')
  const step = (file: string) => C_STEPS.indexOf(file.split('/')[0]!)
  const files = [...new Bun.Glob('**/*.[ch]').scanSync({ cwd: root })]
  const wrong = files.flatMap((file) => {
    const included = [...readFileSync(join(root, file), 'utf8').matchAll(/^#include "(.+)"$/gm)].map(
      ([, path]) => path!,
    )
    return included.filter((path) => step(path) < step(file)).map((path) => `${file} -> ${path}`)
  })
  expect(wrong).toEqual([])
  expect(files.filter((file) => step(file) < 0)).toEqual([])
})

test('the doors reach adapter-v1 through operations', () => {
  const wrong = sources.flatMap((file) =>
    isIn('control/operations', file) || isIn('control/adapter-v1', file)
      ? []
      : importsOf(file)
          .filter((imported) => isIn('control/adapter-v1', imported))
          .map((imported) => `${file} -> ${imported}`),
  )
  expect(wrong).toEqual([])
})

test('every file of a program has its place in the picture', () => {
  const strays = sources.filter((file) => file.split('/')[0]! in STEPS && stepOf(file) === undefined)
  expect(strays).toEqual([])
})

/** What programs import: these pass on what is public. */
const ENTRIES = ['client/entry.ts', 'client/testing/entry.ts']

test('import paths name the file, and no file only passes others on', () => {
  const wrong = sources.flatMap((file) => {
    const text = readFileSync(join(ROOT, file), 'utf8')
    const isBarrel = /^export (\*|\{[^}]*\}) from/m.test(text) && !ENTRIES.includes(file)
    const barrel = isBarrel ? [`${file} passes on another file`] : []
    const vague = importsOf(file).filter((path) => !/\.(ts|tsx|json|txt|html)$|\/bin\/[^/]+$/.test(path))
    return [...barrel, ...vague.map((path) => `${file} -> ${path}`)]
  })
  expect(wrong).toEqual([])
})

/** Folders of the dashboard from the outermost to the innermost; `app` has the parts that the views share. */
test('the model of the dashboard knows no view, and no view of the dashboard another', () => {
  const roomOf = (file: string) => file.split('/')[2]!
  const wrong = sources
    .filter((file) => isIn('control/dashboard', file) && roomOf(file) !== 'app')
    .flatMap((file) =>
      importsOf(file)
        .filter(
          (imported) => isIn('control/dashboard', imported) && ![roomOf(file), 'model'].includes(roomOf(imported)),
        )
        .filter((imported) => roomOf(file) === 'model' || roomOf(imported) !== 'app')
        .map((imported) => `${file} -> ${imported}`),
    )
  expect(wrong).toEqual([])
})

test('no work is left for someone else', () => {
  const marks = new RegExp(
    ['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].map((word) => `\\b${word}\\b`).join('|'),
  )
  const tests = [...new Bun.Glob('tests/**/*.ts').scanSync({ cwd: ROOT })]
  const found = [...sources, ...tests].filter((file) => marks.test(readFileSync(join(ROOT, file), 'utf8')))
  expect(found).toEqual([])
})

describe('the tree of CONTRIBUTING.md', () => {
  const [, tree] = /```\n(control\/ [\s\S]*?)```/.exec(readFileSync(join(ROOT, 'CONTRIBUTING.md'), 'utf8'))!
  const above: string[] = []
  const named = [...tree!.matchAll(/^((?: {2}){0,2})([\w.-]+\/?) {2,}/gm)].map(([, indent, name]) => {
    const depth = indent!.length / 2
    above.splice(depth, above.length, name!)
    return above.join('')
  })

  test('names what exists', () => {
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
  })

  test('has every folder of the programs', () => {
    const folders = new Bun.Glob('{control,runtime,adapter,client,shared}/*/').scanSync({ cwd: ROOT, onlyFiles: false })
    expect(
      [...folders].map((folder) => `${folder.replace(/\/$/, '')}/`).filter((folder) => !named.includes(folder)),
    ).toEqual([])
  })
})

/** What the documents say about the code is what the code says. */
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import manifest from '../package.json'
import {
  currentDesignPage,
  currentGraphSchema,
  currentHttpPage,
  currentOperationsPage,
  currentProgramsPage,
  currentReadme,
  currentRuntimePage,
  currentSchedulesPage,
  currentSettingsPage,
} from '../scripts/docs.ts'

const ROOT = dirname(import.meta.dir)

test('the tables of docs/settings.md are those that parse the command line (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/settings.md'), 'utf8')).toBe(currentSettingsPage())
})

test('README.md quotes the newest report of the bench (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'README.md'), 'utf8')).toBe(currentReadme())
})

test('the messages of docs/design.md are those that wait for a commit (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/design.md'), 'utf8')).toBe(currentDesignPage())
})

test('the example of docs/programs.md is the one that is run (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/programs.md'), 'utf8')).toBe(currentProgramsPage())
})

test('the metrics and log messages of docs/operations.md are those that are declared (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/operations.md'), 'utf8')).toBe(currentOperationsPage())
})

test('the schema of a graph file is that of the schemas that validate (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'shared/contract/graph-schema.json'), 'utf8')).toBe(currentGraphSchema())
})

test('the fields of docs/schedules.md are those of the schema (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/schedules.md'), 'utf8')).toBe(currentSchedulesPage())
})

test('the routes of docs/http.md and docs/runtime.md are those that the services describe (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/http.md'), 'utf8')).toBe(currentHttpPage())
  expect(readFileSync(join(ROOT, 'docs/runtime.md'), 'utf8')).toBe(currentRuntimePage())
})

const DOCUMENTS = [
  ...['README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'deploy/README.md', 'bench/README.md', 'examples/README.md'],
  ...new Bun.Glob('docs/**/*.md').scanSync({ cwd: ROOT }),
]

/** A document without its code blocks, in which links and headings mean nothing. */
const proseOf = (document: string): string =>
  readFileSync(join(ROOT, document), 'utf8').replaceAll(/^```[\s\S]*?^```$/gm, '')

/** The links of a document to files here: the path from the root, and the anchor. */
const linksOf = (document: string) =>
  [...proseOf(document).matchAll(/\]\((?!https?:)([^)#]*)#?([^)]*)\)/g)].map(([, path, anchor]) => ({
    path: path === '' ? document : join(dirname(document), path!),
    anchor: anchor!,
  }))

/** The anchors of the headings of a document, as GitHub names them. */
const anchorsOf = (document: string): Set<string> =>
  new Set(
    [...proseOf(document).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      heading!
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  )

test('every file that the documents link to exists', () => {
  const broken = DOCUMENTS.flatMap((document) =>
    linksOf(document).flatMap(({ path }) => (existsSync(join(ROOT, path)) ? [] : [`${document} -> ${path}`])),
  )
  expect(broken).toEqual([])
})

test('every heading that the documents link to exists', () => {
  const broken = DOCUMENTS.flatMap((document) =>
    linksOf(document).flatMap(({ path, anchor }) =>
      anchor === '' || !path.endsWith('.md') || anchorsOf(path).has(anchor) ? [] : [`${document} -> ${path}#${anchor}`],
    ),
  )
  expect(broken).toEqual([])
})

test('the pinned Bun is the same everywhere', () => {
  const makefile = readFileSync(join(ROOT, 'Makefile'), 'utf8')
  const versions = [
    manifest.engines.bun,
    manifest.devDependencies['bun-types'],
    /^BUN_VERSION := (.+)$/m.exec(makefile)?.[1],
  ]
  expect(new Set(versions).size).toBe(1)
})

test('every dependency is pinned to one version', () => {
  const versions = Object.values({ ...manifest.dependencies, ...manifest.devDependencies })
  expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([])
})

test('the make targets and scripts that the documents name exist', () => {
  const makefile = readFileSync(join(ROOT, 'Makefile'), 'utf8')
  const documents = ['README.md', 'CONTRIBUTING.md'].map((file) => readFileSync(join(ROOT, file), 'utf8')).join('\n')
  const targets = [...documents.matchAll(/(?:`|^)make ([a-z]+)/gm)].map(([, target]) => target!)
  const scripts = [...documents.matchAll(/bun run ([a-z]+)/g)].map(([, script]) => script!)
  expect(targets.filter((target) => !new RegExp(`^${target}:`, 'm').test(makefile))).toEqual([])
  expect(scripts.filter((script) => !(script in manifest.scripts))).toEqual([])
})

/** What the documents say about the code is what the code says. */
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import manifest from '../package.json'
import { currentExecutorsPage, currentSettingsPage } from '../scripts/docs.ts'

const ROOT = dirname(import.meta.dir)

test('the tables of docs/settings.md are those that parse the command line (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/settings.md'), 'utf8')).toBe(currentSettingsPage())
})

test('the example of docs/executors.md is the one that is run (else: bun run docs)', () => {
  expect(readFileSync(join(ROOT, 'docs/executors.md'), 'utf8')).toBe(currentExecutorsPage())
})

test('every file that the documents link to exists', () => {
  const documents = [
    'README.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    ...['deploy/README.md', 'bench/README.md', 'examples/README.md'],
    ...new Bun.Glob('docs/**/*.md').scanSync({ cwd: ROOT }),
  ]
  const broken = documents.flatMap((document) => {
    const links = readFileSync(join(ROOT, document), 'utf8').matchAll(/\]\((?!https?:|#)([^)#]+)/g)
    return [...links].map(([, path]) => join(dirname(document), path!)).filter((path) => !existsSync(join(ROOT, path)))
  })
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

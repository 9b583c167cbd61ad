/** The workflows call what exists, and a release begins only with the tag of its version. */
import { describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '../support/deploy-files.ts'
import { tempDir } from '../support/temp.ts'

interface Workflow {
  readonly name: string
  readonly permissions: object
  readonly jobs: Readonly<
    Record<string, { 'timeout-minutes'?: number; steps: readonly { uses?: string; run?: string; env?: object }[] }>
  >
}

const directory = join(ROOT, '.github/workflows')
const makefile = readFileSync(join(ROOT, 'Makefile'), 'utf8')

describe.each(readdirSync(directory))('%s', (file) => {
  const workflow = Bun.YAML.parse(readFileSync(join(directory, file), 'utf8')) as Workflow
  const steps = Object.values(workflow.jobs).flatMap((job) => job.steps)

  test('has the name of its file, no more permissions than it names, and a limit for each job', () => {
    expect(workflow.name).toBe(file.replace('.yml', ''))
    expect(workflow.permissions).toEqual({ contents: 'read' })
    for (const job of Object.values(workflow.jobs)) expect(job['timeout-minutes']).toBeGreaterThan(0)
  })

  test('calls targets of the Makefile and scripts that exist', () => {
    const commands = steps.flatMap(({ run }) => (run === undefined ? [] : [run]))
    const targets = commands.flatMap((run) => [...run.matchAll(/^make ([\w-]+)/gm)].map(([, target]) => target!))
    const scripts = commands.flatMap((run) =>
      [...run.matchAll(/(?:^|\s)((?:scripts|\.ci)\/[\w.-]+)/g)].map(([, path]) => path!),
    )
    expect(targets.length + scripts.length).toBeGreaterThan(0)
    for (const target of targets) expect(makefile).toContain(`\n${target}: node_modules\n`)
    for (const script of scripts) expect(statSync(join(ROOT, script)).mode & 0o111).toBeGreaterThan(0)
  })

  test('uses only actions of a named version', () => {
    for (const { uses } of steps) if (uses !== undefined) expect(uses).toMatch(/^actions\/[\w-]+@v\d+$/)
  })
})

test('each night runs every test at its full size', () => {
  const { on, jobs } = Bun.YAML.parse(readFileSync(join(directory, 'nightly.yml'), 'utf8')) as Workflow & {
    on: { schedule: readonly { cron: string }[] }
  }
  expect(on.schedule.map(({ cron }) => cron)).toEqual([expect.stringMatching(/^\d+ \d+ \* \* \*$/)])
  const { run, env } = jobs['linux-x64']!.steps.at(-1)!
  expect({ run, env }).toEqual({ run: '.ci/run', env: { SUITES: 'nightly' } })
  expect(readFileSync(join(ROOT, '.ci/run'), 'utf8')).toMatch(/for suite in .*SUITES:-test test-long.*; do/)
  expect(/\nnightly: node_modules\n\t@TASKMILL_NIGHTLY=1 /.test(makefile)).toBe(true)
})

describe('release-tag', () => {
  test.each([
    ['v1.2.0', '## 1.2.0 (2026-01-02)', 0, ''],
    ['v1.2.0', '## 1.2.0', 0, ''],
    ['v1.2.1', '## 1.2.0', 1, 'release-tag: the tag is v1.2.1, but package.json has version 1.2.0\n'],
    ['1.2.0', '## 1.2.0', 1, 'release-tag: the tag is 1.2.0, but package.json has version 1.2.0\n'],
    ['v1.2.0', '## 1.2.01', 1, 'release-tag: CHANGELOG.md has no section "## 1.2.0"\n'],
    [
      'v1.2.0',
      '## 1.2.0 (not released yet)',
      1,
      'release-tag: CHANGELOG.md says that 1.2.0 is not released: put the date there\n',
    ],
  ])('%s with %s', (tag, heading, exitCode, stderr) => {
    using project = tempDir()
    mkdirSync(join(project.path, 'scripts'))
    copyFileSync(join(ROOT, 'scripts/release-tag'), join(project.path, 'scripts/release-tag'))
    writeFileSync(
      join(project.path, 'package.json'),
      JSON.stringify({ name: 'x', version: '1.2.0', license: '' }, null, 2),
    )
    writeFileSync(join(project.path, 'CHANGELOG.md'), `# Changelog\n\n${heading}\n`)
    const child = Bun.spawnSync([join(project.path, 'scripts/release-tag'), tag])
    expect({ exitCode: child.exitCode, stderr: child.stderr.toString() }).toEqual({ exitCode, stderr })
  })
})

test('the images of a release have their files', () => {
  for (const service of ['control', 'runtime'])
    expect(existsSync(join(ROOT, `deploy/${service}.Dockerfile`))).toBe(true)
})

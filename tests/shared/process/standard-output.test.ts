/** What the executables print goes to the end of what the shell opened, and nothing that is there is lost. */
import { describe, expect, test } from 'bun:test'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../../scripts/build.ts'
import { testEnvironment } from '../../support/service.ts'
import { tempDir } from '../../support/temp.ts'

const ROOT = join(import.meta.dir, '../../..')

/** The content of a file with the line `before` after `command` was run with `>> file`. */
async function appended(command: readonly string[]): Promise<{ readonly text: string; readonly exitCode: number }> {
  using dir = tempDir()
  const file = join(dir.path, 'out')
  writeFileSync(file, 'before\n')
  const stdout = openSync(file, 'a')
  try {
    const child = Bun.spawn([...command], { stdout, stderr: 'ignore', env: testEnvironment({ HOME: dir.path }) })
    return { exitCode: await child.exited, text: readFileSync(file, 'utf8') }
  } finally {
    closeSync(stdout)
  }
}

const writing = (text: string): string[] => [
  ...[process.execPath, '-e'],
  `import { writeOut } from ${JSON.stringify(join(ROOT, 'shared/process/standard-output.ts'))}; await writeOut(${text})`,
]

describe('a file to which the shell appends keeps what it has', () => {
  test.each([
    ['an empty text', `''`, ''],
    ['a line', `'line\\n'`, 'line\n'],
    ['4 MB', `'x'.repeat(4_000_000)`, 'x'.repeat(4_000_000)],
  ])('for %s', async (_, text, expected) => {
    const { text: found } = await appended(writing(text))
    expect(found.length).toBe('before\n'.length + expected.length)
    expect(found === `before\n${expected}`).toBe(true)
  })

  test('for an empty table of the client, and for a report of the runtime service', async () => {
    const nothing = await appended([await builtProgram('taskmill'), 'down', '-o', 'json'])
    expect(nothing.text).toMatch(/^before\n\{.*\}\n$/)
    const report = await appended([await builtProgram('taskmill-runtime'), 'doctor', '--json', '--disable-cgroup'])
    expect(report.text).toMatch(/^before\n\{.*\}\n$/)
  })
})

test('a full device is told', async () => {
  const child = Bun.spawn(['/bin/sh', '-c', 'exec "$@" > /dev/full', 'sh', ...writing(`'x'.repeat(4_000_000)`)], {
    stderr: 'pipe',
  })
  expect(await new Response(child.stderr).text()).toContain('ENOSPC')
  expect(await child.exited).toBe(1)
})

test('no executable prints with a call that opens the file', async () => {
  const sources = new Bun.Glob('{adapter,client,control,runtime,shared,scripts,examples}/**/*.{ts,tsx}')
  const found = [...sources.scanSync(ROOT)].filter((file) =>
    /Bun\.write\(\s*Bun\.(stdout|stderr)/.test(readFileSync(join(ROOT, file), 'utf8')),
  )
  expect(found).toEqual([])
})

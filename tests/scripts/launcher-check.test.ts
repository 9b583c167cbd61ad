/**
 * Goal: no build of the launcher goes uncompared unless somebody says so. Method: the script beside copies of the checked-in
 * builds, with a `make` that gives them, or something else, as what it built.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chmodSync, cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from '../support/temp.ts'

const ROOT = join(import.meta.dir, '../..')
const temp = tempDir()
afterAll(() => temp[Symbol.dispose]())

const recorded = /^# tools: (.*)$/m.exec(readFileSync(join(ROOT, 'runtime/launch/bin/SOURCES.sha256'), 'utf8'))![1]!

/** make -s -C PROGRAM OUT=DIR; with MORE it builds something else. No program for arm64 is run. */
const MAKE = `#!/bin/sh
mkdir -p "\${4#OUT=}"
for file in "$3"/bin/taskmill-*; do { cat "$file"; printf "%s" "$MORE"; } >"\${4#OUT=}/\${file##*/}"; done
`
const put = (name: string, text: string) => {
  writeFileSync(join(temp.path, 'bin', name), text)
  chmodSync(join(temp.path, 'bin', name), 0o755)
}

beforeAll(() => {
  mkdirSync(join(temp.path, 'scripts'))
  cpSync(join(ROOT, 'scripts/launcher-check'), join(temp.path, 'scripts/launcher-check'))
  for (const program of ['launch', 'escape'])
    cpSync(join(ROOT, 'runtime', program, 'bin'), join(temp.path, 'runtime', program, 'bin'), { recursive: true })
  mkdirSync(join(temp.path, 'bin'))
  put('make', MAKE)
  put('bun', '#!/bin/sh\necho "bun $*"\n')
  put('qemu-aarch64-static', '#!/bin/sh\n[ $# = 1 ] && exit 125\necho ok\n')
})

function check(env: Readonly<Record<string, string>>) {
  const { exitCode, stdout, stderr } = Bun.spawnSync([join(temp.path, 'scripts/launcher-check')], {
    env: { PATH: `${join(temp.path, 'bin')}:/usr/bin:/bin`, LAUNCHER_TOOLS: recorded, MORE: '', ...env },
  })
  return { code: exitCode, text: `${stdout}${stderr}` }
}

const OTHER = { LAUNCHER_TOOLS: 'gcc-12=99', MORE: 'x' }

test('the same bytes are fine, whatever built them', () => {
  for (const LAUNCHER_TOOLS of [recorded, OTHER.LAUNCHER_TOOLS]) {
    const { code, text } = check({ LAUNCHER_TOOLS })
    expect([text, code]).toEqual(['the launchers are what their sources give\nthe launcher for arm64 runs\n', 0])
  }
})

test('other bytes by the recorded tools are a build of other sources', () => {
  const { code, text } = check({ MORE: 'x', TASKMILL_OTHER_LAUNCHER_TOOLS: '1' })
  expect([code, text]).toEqual([1, expect.stringContaining('is not what the sources give: run make launcher')])
})

test('other bytes by other tools fail, and the message says how to record the tools', () => {
  const { code, text } = check(OTHER)
  expect(code).toBe(1)
  for (const part of [
    `recorded: ${recorded}`,
    'here:     gcc-12=99',
    'make launcher && git commit',
    'TASKMILL_OTHER_LAUNCHER_TOOLS=1',
  ])
    expect(text).toContain(part)
})

test('with the variable the tests run over the new build, and the output says that nothing was compared', () => {
  const { code, text } = check({ ...OTHER, TASKMILL_OTHER_LAUNCHER_TOOLS: '1' })
  expect([code, text]).toEqual([0, expect.stringContaining('NOT COMPARED')])
  expect(text).toContain('bun test --timeout 60000 tests/runtime/launch tests/runtime/sandbox')
  expect(text).not.toContain('the launchers are what')
})

/** `--data-dir` that would take a directory of the system: both services refuse it by name, before anything is written. */
import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { builtProgram } from '../../scripts/build.ts'
import { testEnvironment } from '../support/service.ts'

const START = {
  'taskmill-control': ['--addr', '127.0.0.1:0'],
  'taskmill-runtime': ['serve', '--listen-addr', '127.0.0.1:0'],
} as const

const REMEDY = 'the files of a service need a directory of their own, such as /var/lib/taskmill'

test.each(
  (['taskmill-control', 'taskmill-runtime'] as const).flatMap((program) => [
    [program, '/', 'holds /bin'] as const,
    [program, '/usr', 'is a directory of the system'] as const,
  ]),
)('%s --data-dir %s: exit code 2, and one line', async (program, dataDir, fault) => {
  const child = Bun.spawn([await builtProgram(program), ...START[program], '--data-dir', dataDir], {
    ...{ env: testEnvironment(), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const stderr = await new Response(child.stderr).text()
  expect(await child.exited).toBe(2)
  expect(stderr).toMatch(/^[^\n]*\n$/)
  expect(stderr).toStartWith(`${program}`)
  expect(stderr).toEndWith(`: --data-dir ${dataDir} ${fault}: ${REMEDY}\n`)
  for (const name of ['tasks', 'lock', 'runtime.lock', 'state.json'])
    expect(existsSync(`${dataDir}/${name}`)).toBe(false)
})

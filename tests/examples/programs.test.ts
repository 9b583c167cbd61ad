/** Goal: the programs of docs/programs.md do what it says. Method: they run as they are, against real services. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { executables, startMill } from '../support/mill.ts'
import { testEnvironment } from '../support/service.ts'

const EXAMPLES = join(import.meta.dir, '../../examples/client')

async function run(args: readonly string[], env: Readonly<Record<string, string>>) {
  const child = Bun.spawn([process.execPath, ...args], {
    ...{ cwd: EXAMPLES, env: testEnvironment(env), stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('nightly.ts runs its graph once a day, and shows why it failed', async () => {
  await using mill = await startMill()
  const env = { SERVICE_URL: mill.url, SERVICE_TOKEN: mill.token }
  const day = () => new Date().getUTCDate()
  const today = day()
  const first = await run(['nightly.ts'], env)
  expect(first).toMatchObject({ exitCode: 0, stderr: '' })
  expect(first.stdout).toContain('list: success\n')
  expect(first.stdout).toContain(
    'read: task failed after all retries: command failed: exit status 1\ncat: report.txt: ',
  )
  expect(first.stdout).toEndWith('\nfailed\n')
  expect(await run(['nightly.ts'], env)).toEqual(first)
  const graphs = await Array.fromAsync(mill.client.graphs())
  if (day() === today) expect(graphs.length).toBe(1)
  const refused = await run(['nightly.ts'], { ...env, SERVICE_TOKEN: 'wrong' })
  expect(refused).toMatchObject({ exitCode: 1, stdout: '' })
  expect(refused.stderr).toStartWith('unauthenticated: POST /tasks answered 401')
})

test('mill.test.ts passes', async () => {
  const env = { TASKMILL_BIN: await executables(), ...(process.env.TMPDIR && { TMPDIR: process.env.TMPDIR }) }
  const tested = await run(['test', '--timeout=60000', './mill.test.ts'], env)
  expect(tested.stderr).toContain(' 2 pass\n 0 fail\n')
  expect(tested.exitCode).toBe(0)
})

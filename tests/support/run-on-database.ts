/**
 * Runs the contract tests of control against control services with a database:
 *
 *   bun tests/support/run-on-database.ts [FILE...]
 *
 * Without files, all that can apply: `embedded-only.ts` names the others, with reasons. Starts a PostgreSQL for them.
 */
import { existsSync, readdirSync, statfsSync } from 'node:fs'
import { join } from 'node:path'
import { EMBEDDED_FILES, EMBEDDED_TESTS } from './embedded-only.ts'
import { startPostgres } from './postgres.ts'

const CONTRACT = join(import.meta.dir, '..', 'contract')

/** Memory in which the databases are kept if there is so much: hundreds are made and emptied. */
const MEMORY = '/dev/shm'
const MEMORY_BYTES = 4e9

/** Connections: two files at a time, with some services each. */
const SETTINGS = { max_connections: '200' }

const TIMEOUT_MS = 60_000

/** Of the tests that take long, those that say what a database must not change. */
const LONG =
  /^(event-clients|executors-mcp-http|graph-files|graph-groups|large-bodies|mcp-conformance|queue-timeout|runtime-pool|runtimes|runtime-tasks-delete|runtimes-register|tracing|waiting)\.long\./

/** The names of all contract tests that can apply, but for most of those that take long. */
export const filesOnDatabase = (): string[] =>
  readdirSync(CONTRACT).filter(
    (name) =>
      name.endsWith('.test.ts') &&
      (!name.endsWith('.long.test.ts') || LONG.test(name)) &&
      !EMBEDDED_FILES.some(({ files }) => files.test(name)),
  )

interface DatabaseRun {
  readonly exitCode: number
  /** Closing lines and failures. */
  readonly output: string
}

/** Runs the contract tests in `names`. `onOutput` gets what `bun test` prints. */
export async function runOnDatabase(
  names: readonly string[],
  onOutput: (text: string) => void = () => {},
): Promise<DatabaseRun> {
  const hasMemory = existsSync(MEMORY) && freeBytes(MEMORY) > MEMORY_BYTES
  await using postgres = await startPostgres({ settings: SETTINGS, ...(hasMemory && { parent: MEMORY }) })
  const pattern = `^(?!.*(${EMBEDDED_TESTS.flatMap(({ titles }) => titles)
    .map(escaped)
    .join('|')}))`
  const files = names.map((name) => join(CONTRACT, name))
  const tests = Bun.spawn(
    [process.execPath, 'test', '--parallel=2', `--timeout=${TIMEOUT_MS}`, '-t', pattern, ...files],
    {
      cwd: join(CONTRACT, '..', '..'),
      env: { ...process.env, TASKMILL_TEST_DATABASE: postgres.url() },
      ...{ stdin: 'ignore', stdout: 'inherit', stderr: 'pipe' },
    },
  )
  let output = ''
  const decoder = new TextDecoder()
  for await (const chunk of tests.stderr) {
    const text = decoder.decode(chunk, { stream: true })
    output += text
    onOutput(text)
  }
  return { exitCode: await tests.exited, output }
}

const freeBytes = (path: string): number => {
  const { bavail, bsize } = statfsSync(path)
  return bavail * bsize
}

const escaped = (title: string): string => title.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')

if (import.meta.main) {
  const names = process.argv.slice(2).map((path) => path.replace(/^.*\//, ''))
  const { exitCode } = await runOnDatabase(
    names.length === 0 ? filesOnDatabase() : names,
    (text) => void process.stderr.write(text),
  )
  process.exitCode = exitCode
}

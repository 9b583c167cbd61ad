/**
 * Runs the tests and checks what a test runner does not see.
 *
 *   bun scripts/test.ts           every test but those in *.long.test.ts: `make test`
 *   bun scripts/test.ts --long    only the tests in *.long.test.ts: `make test-long`
 *   bun scripts/test.ts --crash   only those that kill services at random moments: `make crash`
 *   bun scripts/test.ts --all     all tests
 *   bun scripts/test.ts --portable   the tests that need neither Linux nor the executables: `make test-portable`
 *
 * Further arguments go to `bun test`.
 *
 * The run must end with the closing line of `bun test`: a test that ends the process would otherwise look like success.
 * The run must leave nothing behind: no process with the mark of this run, no file in its temporary directory, no
 * cgroup. The last line of output is `N passed, N failed`.
 */
import { chmodSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { allCgroups, leftCgroups } from './left-cgroups.ts'
import { markedProcesses } from './marked-processes.ts'

const ROOT = dirname(import.meta.dir)

/** Default timeout of a test in milliseconds. Tests wait for conditions, so only a hang on a busy machine reaches it. */
const TEST_TIMEOUT_MS = 60_000

/** Test files that take long for what they try: kills under load, waits for time limits, other kernels, images, databases, benchmarks. */
const LONG = '.long.test.ts'

const { selection, rest } = splitArguments(process.argv.slice(2))

/** Pure rules, and what both Linux and macOS do in the same way. */
const PORTABLE = [
  ...['shared/contract', 'shared/egress', 'shared/text/live-view', 'shared/streams'],
  ...[
    'adapter/bridge',
    'adapter/follow',
    'adapter/graph-file',
    'shared/graph-file',
    'adapter/host-file',
    'adapter/table',
    'model',
  ],
  ...['control/adapter-v1', 'control/json', 'control/rules', 'control/task', 'runtime/ledger', 'runtime/egress/wire'],
].map((folder) => `./tests/${folder}/`)

/** Tests that kill services at random moments. */
const CRASH = 'tests/crash/'

type Selection = 'short' | 'long' | 'crash' | 'all' | 'portable'

const run = `run-${process.pid}-${Date.now()}`
const temp = mkdtempSync(join(tmpdir(), 'taskmill-tests-'))
chmodSync(temp, 0o711) // tests run services as other users, who must be able to reach their directories

const cgroupsBefore = new Set(allCgroups())

const tests = Bun.spawn(
  [process.execPath, 'test', '--parallel=2', `--timeout=${TEST_TIMEOUT_MS}`, ...filesOf(selection), ...rest],
  {
    cwd: ROOT,
    env: { ...process.env, TASKMILL_TEST_RUN: run, TMPDIR: temp },
    stdin: 'ignore',
    stdout: 'inherit',
    stderr: 'pipe',
  },
)
let output = ''
let unshown = ''
const decoder = new TextDecoder()
for await (const chunk of tests.stderr) {
  const text = decoder.decode(chunk, { stream: true })
  output += text
  showLines(text)
}
showLines('\n')
const exitCode = await tests.exited

const faults: string[] = []
const passed = lastCount('pass')
const failed = lastCount('fail')
const skipped = lastCount('skip')
if (!/^Ran \d+ tests? across \d+ files?\./m.test(withoutColours(output)))
  faults.push('the run ended without its closing line')
if (exitCode !== 0 && failed === 0) faults.push(`bun test ended with exit code ${exitCode}`)
for (const left of await leftProcesses()) faults.push(`a test left a process behind: ${left}`)
for (const left of readdirSync(temp)) {
  faults.push(`a test left ${left} in the temporary directory: ${contentOf(join(temp, left))}`)
}
rmSync(temp, { recursive: true, force: true })
for (const left of await leftCgroups(cgroupsBefore)) faults.push(`a test left the cgroup ${left}`)

for (const fault of faults) console.error(`fault: ${fault}`)
const isRed = faults.length > 0 || failed > 0 || passed === 0
if (skipped > 0) console.log(`${skipped} skipped, for the reason in their names`)
console.log(`${passed} passed, ${failed + faults.length} failed`)
process.exit(isRed ? 1 : 0)

/** The first argument selects the files, the others belong to `bun test`. */
function splitArguments(argv: readonly string[]): { selection: Selection; rest: readonly string[] } {
  const [first, ...others] = argv
  if (first === '--long') return { selection: 'long', rest: others }
  if (first === '--crash') return { selection: 'crash', rest: others }
  if (first === '--all') return { selection: 'all', rest: others }
  if (first === '--portable') return { selection: 'portable', rest: others }
  return { selection: 'short', rest: argv }
}

/** Arguments of `bun test` that select the files. */
function filesOf(selection: Selection): string[] {
  if (selection === 'all') return []
  if (selection === 'portable') return PORTABLE
  if (selection === 'crash') return [CRASH]
  return selection === 'long' ? [LONG] : [`--path-ignore-patterns=**/*${LONG}`]
}

/** Shows whole lines as they come, but for the good news: there are well over a thousand of them. */
function showLines(text: string): void {
  const lines = (unshown + text).split('\n')
  unshown = lines.pop()!
  for (const line of lines) {
    if (!/^\(pass\)/.test(withoutColours(line))) process.stderr.write(`${line}\n`)
  }
}

/** Tells whose directory it was. */
function contentOf(path: string): string {
  try {
    return readdirSync(path, { recursive: true }).slice(0, 20).join(', ') || 'empty'
  } catch {
    return 'a file'
  }
}

/** The number before `word` in the closing lines. */
function lastCount(word: string): number {
  const counts = [...withoutColours(output).matchAll(new RegExp(`^ *(\\d+) ${word}$`, 'gm'))]
  return Number(counts.at(-1)?.[1] ?? 0)
}

function withoutColours(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
  return text.replace(/\x1b\[[0-9;]*m/g, '')
}

/** Processes that carry the mark of this run, once those that are just ending had a moment to do so. */
async function leftProcesses(): Promise<string[]> {
  for (let look = 0; ; look++) {
    const left = [...markedProcesses(run)]
    if (left.length === 0 || look === 200) return left.map(([pid, command]) => `${pid} ${command}`)
    await Bun.sleep(50)
  }
}

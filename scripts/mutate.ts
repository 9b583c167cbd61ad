/**
 * Puts a fault into one rule after the other (`mutants.ts`), in a copy of this checkout, and runs the tests that have to
 * notice it. A fault that no test notices survives.
 *
 *   bun scripts/mutate.ts [WORD]   tries all, or those whose rule or file has WORD
 *
 * Exit code 1 if a fault survives, or if the text of a rule has changed.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { markedProcesses } from './marked-processes.ts'
import { faultOf, MUTANTS, type Mutant } from './mutants.ts'

const ROOT = dirname(import.meta.dir)

/** Milliseconds of one test. A test that hangs because of a fault has noticed it. */
const MAX_TEST_MS = 60_000

const word = process.argv[2] ?? ''
const chosen = MUTANTS.filter(({ rule, file }) => `${file} ${rule}`.includes(word))
const lost = MUTANTS.flatMap((mutant) => faultOf(mutant))
if (lost.length > 0 || chosen.length === 0) {
  console.error(lost.join('\n') || `no rule has ${JSON.stringify(word)}`)
  process.exit(1)
}

const run = `mutants-${process.pid}`
const copy = mkdtempSync(join(tmpdir(), 'taskmill-mutants-'))
process.on('exit', () => rmSync(copy, { recursive: true, force: true }))
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
copyCheckout()

const red = await firstFailure([...new Set(chosen.flatMap(({ tests }) => tests))])
if (red !== undefined) {
  console.error(`a test fails without any fault: ${red}`)
  process.exit(1)
}
let survived = 0
for (const mutant of chosen) {
  const failure = await failureWith(mutant)
  if (failure === undefined) survived++
  console.log(`${mutant.file}: ${mutant.rule}: ${failure === undefined ? 'SURVIVED' : `killed by "${failure}"`}`)
}
console.log(`${chosen.length - survived} killed, ${survived} survived`)
process.exit(survived === 0 ? 0 : 1)

/** Copies what git knows, as it is now. Tests build the executables of the copy. */
function copyCheckout(): void {
  const list = 'git ls-files -z --cached --others --exclude-standard'
  const copied = Bun.spawnSync(['sh', '-c', `${list} | xargs -0 cp -a --parents -t "$0"`, copy], {
    ...{ cwd: ROOT, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
  })
  if (copied.exitCode !== 0) throw new Error(`cannot copy ${ROOT}: ${copied.stderr}`)
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  mkdirSync(join(copy, 'temp'), { mode: 0o711 })
  chmodSync(copy, 0o711) // tests run services as other users, who must be able to reach their directories
}

async function failureWith({ file, text, instead, tests }: Mutant): Promise<string | undefined> {
  const path = join(copy, file)
  const sound = readFileSync(path, 'utf8')
  writeFileSync(
    path,
    sound.replace(text, () => instead),
  )
  try {
    return await firstFailure(tests)
  } finally {
    writeFileSync(path, sound)
  }
}

/** The title of a test that fails; undefined if none does. */
async function firstFailure(tests: readonly string[]): Promise<string | undefined> {
  const paths = tests.map((one) => `./tests/${one}`)
  const child = Bun.spawn([process.execPath, 'test', '--parallel=2', '--bail', `--timeout=${MAX_TEST_MS}`, ...paths], {
    ...{ cwd: copy, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' },
    env: { ...process.env, TASKMILL_TEST_RUN: run, TMPDIR: join(copy, 'temp') },
  })
  const output = await new Response(child.stderr).text()
  const exitCode = await child.exited
  // The test that fails may leave services behind.
  for (const [pid] of markedProcesses(run)) if (pid !== child.pid) process.kill(pid, 'SIGKILL')
  if (exitCode === 0) return undefined
  return /^\(fail\) (.*?)(?: \[[\d.]+m?s\])?$/m.exec(output)?.[1] ?? output.slice(-2_000)
}

/**
 * Compiles each program to one executable in dist/. `--target=bun-linux-arm64` and its like cross-compile.
 *
 * Tests, demo and benchmark get their executables from `builtProgram`, which builds a missing or outdated executable.
 * Concurrent builds are safe: each moves its result into place atomically.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = dirname(import.meta.dir)
const DIST = join(ROOT, 'dist')

/** Executable name to its entry. */
export const PROGRAMS = {
  'taskmill-control': 'control/main.ts',
  'taskmill-runtime': 'runtime/main.ts',
  taskmill: 'adapter/main.ts',
} as const

export type ProgramName = keyof typeof PROGRAMS

/**
 * Path of the executable `name`, built from the sources as they are at the first call: to read them all takes a quarter of the time
 * of a start of a service.
 */
export function builtProgram(name: ProgramName): Promise<string> {
  let built = builds.get(name)
  if (built === undefined) {
    built = buildOutdated(name).catch((error) => {
      builds.delete(name)
      throw error
    })
    builds.set(name, built)
  }
  return built
}

async function buildOutdated(name: ProgramName): Promise<string> {
  const path = join(DIST, name)
  if (!existsSync(path) || readOr(stampOf(name), '') !== sourcesHash()) await buildProgram(name)
  return path
}

/** Builds of this process. A second one of a program would write into the same directory. */
const builds = new Map<ProgramName, Promise<string>>()

/**
 * How reluctant the compiler of JavaScript is while an executable starts; a service sets 1, the normal, once it listens. A
 * start runs most code once or twice. CPU time of control until its first answer: 76 ms with 1, 60 with 4, 54 with 10 and
 * with 50. More would cost a start with many tasks, whose loops are worth compiling.
 */
const START_JIT_POLICY = 10

export interface CompileOptions {
  /** A platform of Bun. Default: this one. */
  readonly target?: string | undefined
  readonly jitPolicy?: number
}

/**
 * Compiles the file `entry` into the executable `outfile`, or throws with the compiler's output.
 *
 * Of the 122.4 MB of control, 109.1 are Bun, 2.4 are code and 10.9 its bytecode; without `--minify` it has 2.3 MB more. It has no
 * source map.
 *
 * Left out: `--bytecode-order` needs a run between two builds, and saves 3.5 MB of file pages but no time.
 * `--bytecode-depth=0` makes an executable 8 MB smaller and its start 20 ms of CPU time longer. `--smol` and
 * `--no-optimize-bytecode` change neither start nor idle memory.
 */
export async function compile(entry: string, outfile: string, options: CompileOptions = {}): Promise<void> {
  const { target, jitPolicy = START_JIT_POLICY } = options
  const command = [
    ...[process.execPath, 'build', entry],
    ...['--compile', '--minify', '--bytecode', '--format=esm', `--outfile=${outfile}`],
    // Without it, what a dynamic import alone needs (node:fs costs a millisecond) is loaded at every start.
    '--splitting',
    `--compile-jit-policy=${jitPolicy}`,
    // A compiled executable would otherwise obey .env and bunfig.toml files of whatever directory it is started in.
    ...['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'],
    ...(target === undefined ? [] : [`--target=${target}`]),
    ...constants(target),
  ]
  const compiler = Bun.spawn(command, { cwd: ROOT, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([
    new Response(compiler.stdout).text(),
    new Response(compiler.stderr).text(),
  ])
  if ((await compiler.exited) !== 0) throw new Error(`cannot build ${entry}:\n${stdout}${stderr}`)
}

/** The constants of `shared/process/build-info.ts`. */
function constants(target: string | undefined): string[] {
  const build = target?.replace(/^bun-/, '') ?? `${process.platform}-${process.arch}`
  const values = { TASKMILL_COMMIT: commitOfSources(), TASKMILL_BUILD: build }
  return Object.entries(values).flatMap(([name, value]) => ['--define', `${name}=${JSON.stringify(value)}`])
}

/** The commit, with `-dirty` if tracked files were changed. `unknown` without git. */
function commitOfSources(): string {
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=12', '--exclude=*']
    const { exitCode, stdout } = Bun.spawnSync(['git', ...args], { cwd: ROOT, stdin: 'ignore', stderr: 'ignore' })
    const commit = stdout.toString().trim()
    return exitCode === 0 && commit !== '' ? commit : 'unknown'
  } catch {
    return 'unknown' // there is no git
  }
}

async function buildProgram(name: ProgramName, target?: string): Promise<void> {
  const sources = sourcesHash()
  const aside = join(DIST, `.build-${name}-${process.pid}`)
  mkdirSync(aside, { recursive: true })
  try {
    await compile(join(ROOT, PROGRAMS[name]), join(aside, name), { target })
    renameSync(join(aside, name), join(DIST, name))
    writeFileSync(stampOf(name), target === undefined ? sources : '')
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

/** Records which sources the executable in dist/ was built from. */
const stampOf = (name: ProgramName): string => join(DIST, `.${name}.sources`)

function sourcesHash(): string {
  const hash = new Bun.CryptoHasher('sha256')
  const files = [...new Bun.Glob('{control,runtime,adapter,shared}/**/*').scanSync({ cwd: ROOT })].sort()
  for (const file of [...files, 'scripts/build.ts', 'package.json', 'bun.lock']) {
    hash.update(file).update(readFileSync(join(ROOT, file)))
  }
  return hash.digest('hex')
}

function readOr(path: string, otherwise: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return otherwise
  }
}

if (import.meta.main) {
  const target = process.argv.find((argument) => argument.startsWith('--target='))?.slice('--target='.length)
  for (const name of Object.keys(PROGRAMS) as ProgramName[]) {
    await buildProgram(name, target)
    console.log(`dist/${name}`)
  }
}

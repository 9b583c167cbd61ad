/**
 * Compiles each program to one executable in dist/. `--target=bun-linux-arm64` and its like cross-compile.
 *
 * The same code gives tests, demo and benchmark their executables: `builtProgram` builds what is missing or made of
 * other sources than the present ones. Several may ask at the same time: each puts its result in place in one step.
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

/** The path of the executable `name`, made of the present sources. */
export async function builtProgram(name: ProgramName): Promise<string> {
  const path = join(DIST, name)
  const sources = sourcesHash()
  if (existsSync(path) && readOr(stampOf(name), '') === sources) return path
  await buildProgram(name)
  return path
}

/** Compiles the file `entry` into the executable `outfile`, or throws with the compiler's words. */
export async function compile(entry: string, outfile: string, target?: string): Promise<void> {
  const command = [
    ...[process.execPath, 'build', entry],
    ...['--compile', '--minify', '--bytecode', '--format=esm', `--outfile=${outfile}`],
    // Without it, what a dynamic import alone needs (node:fs costs a millisecond) is loaded at every start.
    '--splitting',
    // A compiled executable would otherwise obey .env and bunfig.toml files of whatever directory it is started in.
    ...['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'],
    ...(target === undefined ? [] : [`--target=${target}`]),
  ]
  const compiler = Bun.spawn(command, { cwd: ROOT, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([
    new Response(compiler.stdout).text(),
    new Response(compiler.stderr).text(),
  ])
  if ((await compiler.exited) !== 0) throw new Error(`cannot build ${entry}:\n${stdout}${stderr}`)
}

async function buildProgram(name: ProgramName, target?: string): Promise<void> {
  const sources = sourcesHash()
  const aside = join(DIST, `.build-${name}-${process.pid}`)
  mkdirSync(aside, { recursive: true })
  try {
    await compile(join(ROOT, PROGRAMS[name]), join(aside, name), target)
    renameSync(join(aside, name), join(DIST, name))
    writeFileSync(stampOf(name), target === undefined ? sources : '')
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

/** Names the sources that the executable in dist/ was made of. */
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

/** Compiles each program to one executable in dist/. `--target=bun-linux-arm64` and its like cross-compile. */
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

const ROOT = dirname(import.meta.dir)

/** Executable name to its entry. */
export const PROGRAMS = {
  'taskmill-control': 'control/main.ts',
  taskmill: 'adapter/main.ts',
} as const

export type ProgramName = keyof typeof PROGRAMS

/** Compiles `name` into `outdir`, or throws with the compiler's words. */
export async function buildProgram(name: ProgramName, outdir: string, target?: string): Promise<void> {
  const command = [
    ...[process.execPath, 'build', join(ROOT, PROGRAMS[name])],
    ...['--compile', '--minify', '--bytecode', '--format=esm', `--outfile=${join(outdir, name)}`],
    // A compiled executable would otherwise obey .env and bunfig.toml files of whatever directory it is started in.
    ...['--no-compile-autoload-dotenv', '--no-compile-autoload-bunfig'],
    ...(target === undefined ? [] : [`--target=${target}`]),
  ]
  const compiler = Bun.spawn(command, { cwd: ROOT, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  const [stdout, stderr] = await Promise.all([
    new Response(compiler.stdout).text(),
    new Response(compiler.stderr).text(),
  ])
  if ((await compiler.exited) !== 0) throw new Error(`cannot build ${name}:\n${stdout}${stderr}`)
}

if (import.meta.main) {
  const outdir = join(ROOT, 'dist')
  const target = process.argv.find((argument) => argument.startsWith('--target='))?.slice('--target='.length)
  mkdirSync(outdir, { recursive: true })
  for (const name of Object.keys(PROGRAMS) as ProgramName[]) {
    await buildProgram(name, outdir, target)
    console.log(`dist/${name}`)
  }
}

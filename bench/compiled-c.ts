/** Compiles the C programs of the bench if there is a compiler. Nothing else needs one. */
import { basename, join } from 'node:path'
import type { Lifetime } from './lifetime.ts'
import { binDir } from './server.ts'

/** The program of one source file, or undefined. */
export async function compiledC(
  source: string,
  flags: readonly string[],
  lifetime: Lifetime,
): Promise<string | undefined> {
  const compiler = Bun.which('cc')
  if (compiler === null) return undefined
  const outfile = join(binDir(lifetime), basename(source, '.c'))
  const compilation = lifetime.spawn([compiler, '-O2', ...flags, '-o', outfile, source])
  return (await compilation.exited) === 0 ? outfile : undefined
}

/**
 * The real executables. The first test that asks for one builds it, unless dist/ holds one of exactly these sources.
 * Test processes that run side by side may build the same thing twice; each puts it in place in one step.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { buildProgram, type ProgramName } from '../../scripts/build.ts'

const ROOT = dirname(dirname(import.meta.dir))
const DIST = join(ROOT, 'dist')

const built = new Map<ProgramName, Promise<string>>()

/** The path of the executable `name`, made of the present sources. */
export function binary(name: ProgramName): Promise<string> {
  let path = built.get(name)
  if (path === undefined) {
    path = upToDate(name)
    built.set(name, path)
  }
  return path
}

async function upToDate(name: ProgramName): Promise<string> {
  const path = join(DIST, name)
  const stamp = join(DIST, `.${name}.sources`)
  const sources = sourcesHash()
  if (readOr(stamp) === sources && (await Bun.file(path).exists())) return path
  const aside = join(DIST, `.build-${process.pid}`)
  mkdirSync(aside, { recursive: true })
  try {
    await buildProgram(name, aside)
    renameSync(join(aside, name), path)
    writeFileSync(stamp, sources)
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
  return path
}

function sourcesHash(): string {
  const hash = new Bun.CryptoHasher('sha256')
  const files = [...new Bun.Glob('{control,runtime,adapter,shared,scripts}/**/*').scanSync({ cwd: ROOT })].sort()
  for (const file of [...files, 'package.json', 'bun.lock']) hash.update(file).update(readFileSync(join(ROOT, file)))
  return hash.digest('hex')
}

function readOr(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Builds `taskmill/client` and `taskmill/testing` for the npm package: ES modules without dependencies, with their types. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { contractTypes } from './contract-types.ts'
import { run } from './run.ts'

const ROOT = dirname(dirname(import.meta.dir))

/** What programs import, and its source. */
const ENTRIES = {
  '.': 'client/entry.ts',
  './client': 'client/entry.ts',
  './testing': 'client/testing/entry.ts',
} as const

/** A program that `taskmill/testing` runs. */
const HEIR = 'client/testing/heir.ts'

/** The field `exports` of the package. */
export const CLIENT_EXPORTS = Object.fromEntries(
  Object.entries(ENTRIES).map(([name, source]) => [
    name,
    { types: `./${source.replace(/\.ts$/, '.d.ts')}`, default: `./${source.replace(/\.ts$/, '.js')}` },
  ]),
)

/** Writes the modules and their types below `directory`, as `CLIENT_EXPORTS` names them. */
export async function writeClient(directory: string): Promise<void> {
  const built = await Bun.build({
    entrypoints: [...Object.values(ENTRIES), HEIR].map((source) => join(ROOT, source)),
    ...{ root: ROOT, outdir: directory, target: 'browser', format: 'esm', splitting: true },
    external: ['node:*', 'bun'],
    naming: { entry: '[dir]/[name].[ext]', chunk: 'client/[name]-[hash].[ext]' },
  })
  if (!built.success) throw new Error(`cannot build the client:\n${built.logs.join('\n')}`)
  await writeTypes(directory)
}

/** Writes the declarations that the entries lead to. */
async function writeTypes(directory: string): Promise<void> {
  const aside = mkdtempSync(join(mkdirs(join(ROOT, 'dist')), '.types-')) // below the root, where the compiler finds packages
  try {
    const options = { noEmit: false, declaration: true, emitDeclarationOnly: true, rootDir: ROOT, outDir: './out' }
    const config = {
      extends: join(ROOT, 'tsconfig.json'),
      ...{ compilerOptions: options, include: [], files: Object.values(ENTRIES).map((source) => join(ROOT, source)) },
    }
    writeFileSync(join(aside, 'tsconfig.json'), JSON.stringify(config))
    await run([join(ROOT, 'node_modules/.bin/tsc'), '-p', aside], { cwd: ROOT })
    const seen = new Set<string>()
    const left = Object.values(ENTRIES).map((source) => source.replace(/\.ts$/, '.d.ts'))
    for (let file = left.pop(); file !== undefined; file = left.pop()) {
      if (seen.has(file)) continue
      seen.add(file)
      const isContract = file === 'client/contract.d.ts'
      const text = isContract ? await contractTypes() : readFileSync(join(aside, 'out', file), 'utf8')
      for (const [, path] of text.matchAll(/ from '(\.[^']+)\.ts'/g))
        left.push(`${normalize(join(dirname(file), path!))}.d.ts`)
      mkdirs(dirname(join(directory, file)))
      writeFileSync(join(directory, file), text.replaceAll(/( from '\.[^']+)\.ts'/g, "$1.js'"))
    }
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}

function mkdirs(directory: string): string {
  mkdirSync(directory, { recursive: true })
  return directory
}

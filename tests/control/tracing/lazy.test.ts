/** Goal: without a collector no code of tracing is loaded. Method: nothing imports it but on demand. */
import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const CONTROL = join(dirname(dirname(dirname(import.meta.dir))), 'control')

test('tracing is imported on demand only', () => {
  const files = [...new Bun.Glob('**/*.ts').scanSync({ cwd: CONTROL })].filter((file) => !file.startsWith('tracing/'))
  const imports = files.flatMap((file) => {
    const transpiler = new Bun.Transpiler({ loader: 'ts' }) // leaves imports of types out
    const { imports } = transpiler.scan(
      readFileSync(join(CONTROL, file), 'utf8').replace(" with { type: 'macro' }", ''),
    )
    const ofTracing = imports.filter(({ path }) => path.includes('/tracing/'))
    // Attempts hand on the trace of a caller without a collector, too. The file imports nothing but shared/logs/trace.ts.
    return ofTracing.filter(({ path }) => !path.endsWith('/trace-context.ts')).map(({ kind }) => `${file}: ${kind}`)
  })
  expect(imports).toEqual(['parts.ts: dynamic-import'])
})

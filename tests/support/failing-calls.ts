/** Makes syncs and renames of a service fail while a test wants it, by a library that is loaded before the C library. */
import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'

const SOURCE = join(import.meta.dir, '../fixtures/failing-calls.c')

/** Why there is no such library here; undefined where there can be one. */
export const missingFailingCalls: string | undefined =
  process.platform !== 'linux' ? 'only on Linux' : Bun.which('cc') === null ? 'no C compiler' : undefined

/** Values of the first byte of the file, as the library reads it. */
const BITS = { none: 0, syncs: 1, renames: 2, both: 3, 'held syncs': 4 } as const
type FailingKind = keyof typeof BITS

export class FailingCalls implements Disposable {
  /** For the environment of the service. */
  readonly env: Readonly<Record<string, string>>
  readonly #fd: number

  /** Builds the library in `dir`. */
  constructor(dir: string) {
    const library = join(dir, 'failing-calls.so')
    const built = Bun.spawnSync(['cc', '-shared', '-fPIC', '-O1', '-o', library, SOURCE, '-ldl'])
    if (built.exitCode !== 0) throw new Error(`cannot build ${SOURCE}: ${built.stderr}`)
    const file = join(dir, 'failing-calls')
    this.env = { LD_PRELOAD: library, FAILING_CALLS: file }
    this.#fd = openSync(file, 'w')
    this.fail('none')
  }

  /** From now on these calls fail with EIO, and no others; held syncs begin only after the next call of this. */
  fail(kind: FailingKind): void {
    writeSync(this.#fd, Buffer.from([BITS[kind]]), 0, 1, 0)
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}

/** A directory for one test, removed at the end of the block. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface TempDir extends Disposable {
  readonly path: string
}

export function tempDir(parent = tmpdir()): TempDir {
  const path = realpathSync(mkdtempSync(join(parent, 'taskmill-')))
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) }
}

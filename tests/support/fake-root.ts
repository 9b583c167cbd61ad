/** Creates a directory with some files of a host. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TempDir, tempDir } from './temp.ts'

/** `files` by their paths below the root; a path that ends with a slash is a directory. */
export function fakeRoot(files: Readonly<Record<string, string>>): TempDir {
  const root = tempDir()
  for (const [path, text] of Object.entries(files)) {
    const at = join(root.path, path)
    mkdirSync(path.endsWith('/') ? at : dirname(at), { recursive: true })
    if (!path.endsWith('/')) writeFileSync(at, text)
  }
  return root
}

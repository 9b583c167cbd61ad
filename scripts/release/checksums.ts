/** SHA256SUMS, in the form that `sha256sum --check` reads. */
import { readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

/** Writes SHA256SUMS beside the files, which are all in one directory. Returns its path. */
export function writeChecksums(files: readonly string[]): string {
  const lines = files
    .toSorted()
    .map((file) => `${new Bun.CryptoHasher('sha256').update(readFileSync(file)).digest('hex')}  ${basename(file)}\n`)
  const path = join(dirname(files[0]!), 'SHA256SUMS')
  writeFileSync(path, lines.join(''))
  return path
}

/**
 * Changes a tokens file: one program at a time, and readers see the old content or the new one.
 *
 * The new content is written to FILE.new, which is made before the old content is read. So it is the lock, too.
 */
import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import { syncDirectoryNow } from '../../shared/files/atomic-file.ts'
import {
  MAX_TOKENS_FILE_BYTES,
  type TokenEntry,
  TokensFault,
  type TokensForm,
  tokensFileIn,
  tokensFormOf,
  tokensText,
} from '../../shared/http/token-entries.ts'
import type { TokensContent } from './toml-text.ts'

/** Milliseconds for which another program may hold the file. */
const PATIENCE_MS = 5_000

const PAUSE_MS = 20

/** What others may do with a file that they could not write before. */
const KEPT_MODE = 0o755

/** The tokens in the file; none if it does not exist. */
export const tokensIn = (path: string): readonly TokenEntry[] => contentOf(path, tokensFormOf(path)).tokens

function contentOf(path: string, form: TokensForm): TokensContent {
  if (!existsSync(path)) return { text: '', tokens: [], tenants: [] }
  const text = readFileSync(path, 'utf8')
  try {
    return { text, ...tokensFileIn(text, form) }
  } catch (error) {
    throw new Error(`cannot use the tokens file ${path}: ${messageOf(error)}`)
  }
}

/** Replaces the tokens by those that `edit` makes of them. Throws, and then the file is as it was. */
export async function editTokens(
  file: string,
  edit: (entries: readonly TokenEntry[]) => readonly TokenEntry[],
): Promise<void> {
  const path = existsSync(file) ? realpathSync(file) : file
  const aside = `${path}.new`
  const fd = await lockedFile(aside)
  try {
    try {
      const form = tokensFormOf(file)
      const before = contentOf(path, form)
      const after = edit(before.tokens)
      const text =
        form === 'toml' ? (await import('./toml-text.ts')).tomlText(before, after) : tokensText(after, before.tenants)
      tokensFileIn(text, form) // what the service would refuse is not written
      if (Buffer.byteLength(text) > MAX_TOKENS_FILE_BYTES)
        throw new TokensFault(`it would have more than ${MAX_TOKENS_FILE_BYTES} bytes`)
      writeFileSync(fd, text)
      if (existsSync(path)) {
        const { mode, uid, gid } = statSync(path)
        fchmodSync(fd, mode & KEPT_MODE)
        if (uid !== process.geteuid?.()) fchownSync(fd, uid, gid) // the service reads it
      }
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    renameSync(aside, path)
  } catch (error) {
    unlinkSync(aside)
    throw error instanceof TokensFault ? new Error(`cannot change the tokens file ${path}: ${error.message}`) : error
  }
  syncDirectoryNow(dirname(path))
}

async function lockedFile(aside: string): Promise<number> {
  const end = performance.now() + PATIENCE_MS
  for (;;) {
    try {
      return openSync(aside, 'wx', 0o600)
    } catch (error) {
      if (systemCodeOf(error) !== 'EEXIST') throw error
      if (performance.now() > end)
        throw new Error(
          `${aside} exists: another program changes the file, or was killed while it did (then remove it)`,
        )
      await Bun.sleep(PAUSE_MS)
    }
  }
}

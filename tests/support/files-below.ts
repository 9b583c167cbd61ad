/** The files below a directory in which a service works. What it removes meanwhile is left out. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { systemCodeOf } from '../../shared/contract/errors.ts'

/** Paths of regular files. Links are not followed. */
export const filesBelow = (top: string): string[] =>
  unlessGone(() => readdirSync(top, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(top, entry.name)
    return entry.isDirectory() ? filesBelow(path) : entry.isFile() ? [path] : []
  })

/** Those of them whose content has the value that is looked for. */
export const filesWith = (top: string, hasValue: (content: Buffer) => boolean): string[] =>
  filesBelow(top).filter((path) => unlessGone(() => hasValue(readFileSync(path)), false))

function unlessGone<T>(read: () => T, absent: T): T {
  try {
    return read()
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return absent
    throw error
  }
}

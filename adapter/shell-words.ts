/** Command lines to paste into a shell. */
import { realpathSync } from 'node:fs'
import { basename } from 'node:path'

/** `word`, quoted for a shell if needed. Single quotes: nothing in it is expanded. */
export const quoted = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`

export const commandLine = (...words: readonly string[]): string => words.map(quoted).join(' ')

/** The name under which a shell finds this client: its path, unless it is in `PATH`. */
export function thisProgram(path: string | undefined): string {
  const { execPath } = process
  if (!basename(execPath).startsWith(NAME)) return NAME // run by Bun from its sources
  const found = Bun.which(NAME, { PATH: path ?? '' })
  return found !== null && realpathSync(found) === realpathSync(execPath) ? NAME : execPath
}

const NAME = 'taskmill'

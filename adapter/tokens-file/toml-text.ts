/** The text of a tokens file in TOML, with other tokens. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { type TokenEntry, tokenEntriesIn } from '../../shared/http/token-entries.ts'
import { shownTable } from '../host-file/toml-edit.ts'

export interface TokensContent {
  readonly text: string
  readonly entries: readonly TokenEntry[]
}

const HEADER = /^[ \t]*\[\[[ \t]*tokens[ \t]*\]\]/gm

/**
 * The text with the tables of `after`. Those that stay keep their place and their comments, unless the tokens are written in
 * another way than as tables `[[tokens]]`.
 */
export function tomlText({ text, entries }: TokensContent, after: readonly TokenEntry[]): string {
  const starts = [...text.matchAll(HEADER)].map(({ index }) => index)
  const head = text.slice(0, starts[0])
  const kept = starts.flatMap((start, i) => (after.includes(entries[i]!) ? [text.slice(start, starts[i + 1])] : []))
  const added = after.filter((entry) => !entries.includes(entry)).map(shownEntry)
  const edited = [head, ...kept, ...added]
    .filter((part) => part !== '')
    .map(withLineEnd)
    .join('')
  if (isDeepStrictEqual(entriesOrNone(edited), [...after])) return edited
  return after.length === 0 ? 'tokens = []\n' : after.map(shownEntry).join('')
}

const shownEntry = (entry: TokenEntry): string => `${shownTable('[tokens]', { ...entry })}\n`

const withLineEnd = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

function entriesOrNone(text: string): readonly TokenEntry[] | undefined {
  try {
    return tokenEntriesIn(text, 'toml')
  } catch {
    return undefined
  }
}

/** The text of a tokens file in TOML, with other tokens. Pure. */
import { isDeepStrictEqual } from 'node:util'
import { type TenantEntry, type TokenEntry, type TokensFile, tokensFileIn } from '../../shared/http/token-entries.ts'
import { shownTable } from '../host-file/toml-edit.ts'

export interface TokensContent extends TokensFile {
  readonly text: string
}

const HEADER = /^[ \t]*\[\[[ \t]*(tokens|tenants)[ \t]*\]\]/gm

/**
 * The text with the tables of `after`. Those that stay keep their place and their comments, unless the tokens are written in
 * another way than as tables `[[tokens]]`.
 */
export function tomlText({ text, tokens, tenants }: TokensContent, after: readonly TokenEntry[]): string {
  const tables = [...text.matchAll(HEADER)].map(({ index, 1: list }) => ({ start: index, isToken: list === 'tokens' }))
  const head = text.slice(0, tables[0]?.start)
  let count = 0
  const kept = tables.flatMap(({ start, isToken }, i) =>
    isToken && !after.includes(tokens[count++]!) ? [] : [text.slice(start, tables[i + 1]?.start)],
  )
  const added = after.filter((entry) => !tokens.includes(entry)).map(shownEntry)
  const edited = [head, ...kept, ...added]
    .filter((part) => part !== '')
    .map(withLineEnd)
    .join('')
  if (isDeepStrictEqual(fileOrNone(edited), { tokens: after, tenants })) return edited
  return [...(after.length === 0 ? ['tokens = []\n'] : after.map(shownEntry)), ...tenants.map(shownTenant)].join('')
}

const shownEntry = (entry: TokenEntry): string => `${shownTable('[tokens]', { ...entry })}\n`

const shownTenant = (entry: TenantEntry): string => `${shownTable('[tenants]', { ...entry })}\n`

const withLineEnd = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`)

function fileOrNone(text: string): TokensFile | undefined {
  try {
    return tokensFileIn(text, 'toml')
  } catch {
    return undefined
  }
}

/** A tokens file for one test, and the callers in it. */
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tokenHash } from '../../shared/http/known-tokens.ts'
import { type Grant, type TenantEntry, type TokenEntry, tokensText } from '../../shared/http/token-entries.ts'
import { tempDir } from './temp.ts'

type Wish = Omit<Grant, 'name'> & { readonly expires?: string }

export interface Tokens extends Disposable {
  readonly path: string
  /** The header of the caller with this name, also of one that has no token (any more). */
  as(name: string): { authorization: string }
  /** Replaces the tokens by these, and what tenants reach. */
  put(tokens: Readonly<Record<string, Wish>>, tenants?: readonly TenantEntry[]): void
  /** Replaces the file by this text. */
  write(text: string): void
}

const secretOf = (name: string): string => `token-of-${name}`

export function tokensFile(tokens: Readonly<Record<string, Wish>>): Tokens {
  const temp = tempDir()
  const path = join(temp.path, 'tokens.json')
  const write = (text: string) => {
    writeFileSync(`${path}.aside`, text, { mode: 0o600 })
    renameSync(`${path}.aside`, path)
  }
  const put: Tokens['put'] = (all, tenants) =>
    write(
      tokensText(
        Object.entries(all).map(([name, wish]): TokenEntry => ({ name, hash: tokenHash(secretOf(name)), ...wish })),
        tenants,
      ),
    )
  put(tokens)
  return {
    ...{ path, put, write },
    as: (name) => ({ authorization: `Bearer ${secretOf(name)}` }),
    [Symbol.dispose]: () => temp[Symbol.dispose](),
  }
}

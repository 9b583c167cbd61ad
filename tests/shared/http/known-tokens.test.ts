import { describe, expect, test } from 'bun:test'
import { chmodSync, renameSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KnownTokens, newToken, tokenHash } from '../../../shared/http/known-tokens.ts'
import { MAX_TOKENS_FILE_BYTES, type TokenEntry, tokensText } from '../../../shared/http/token-entries.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { tempDir } from '../../support/temp.ts'

const entry = (name: string, more: Partial<TokenEntry> = {}): TokenEntry => ({
  ...{ name, hash: tokenHash(`token of ${name}`), rights: ['read'] },
  ...more,
})

function world(...entries: TokenEntry[]) {
  const temp = tempDir()
  const path = join(temp.path, 'tokens.json')
  const put = (text: string) => {
    writeFileSync(`${path}.aside`, text, { mode: 0o600 })
    renameSync(`${path}.aside`, path)
  }
  put(tokensText(entries))
  const { log, texts } = memoryLog()
  const tokens = new KnownTokens(path, log)
  return { path, put, tokens, texts, [Symbol.dispose]: () => temp[Symbol.dispose]() }
}

test('a token is known by its value alone', () => {
  using here = world(entry('a'), entry('b', { rights: ['submit'] }))
  expect(here.tokens.callerWith('token of b')?.grant).toEqual({ name: 'b', rights: ['submit'] })
  for (const other of ['', 'token of c', 'token of b ', tokenHash('token of b')])
    expect(here.tokens.callerWith(other)).toBeUndefined()
})

test.each([
  { approve_own: true },
  { types: ['noop'] },
  { labels: { team: 'a' } },
  { graphs_per_minute: 1 },
  { live_tasks: 1 },
])('a service that knows no graphs refuses %j, which it would not keep', (rule) => {
  using here = world(entry('a'), entry('b', rule))
  const start = () => new KnownTokens(here.path, memoryLog().log, { hasOnlyRights: true })
  expect(start).toThrow(`tokens[1].${Object.keys(rule)}: only the control service knows it (remove it)`)
  here.put(tokensText([entry('a', { expires: '2099-01-01T00:00:00Z' })]))
  expect(start().callerWith('token of a')?.grant).toEqual({ name: 'a', rights: ['read'] })
})

test('a file in TOML is known by its name, and read again', () => {
  using temp = tempDir()
  const path = join(temp.path, 'tokens.toml')
  const put = (name: string) => {
    const text = `[[tokens]]\nname = "${name}"\nhash = "${tokenHash(`token of ${name}`)}"\nrights = ["read"]\n`
    writeFileSync(`${path}.aside`, text, { mode: 0o600 })
    renameSync(`${path}.aside`, path)
  }
  put('a')
  const tokens = new KnownTokens(path, memoryLog().log)
  expect(tokens.callerWith('token of a')?.grant).toEqual({ name: 'a', rights: ['read'] })
  put('b')
  tokens.look()
  expect([tokens.callerWith('token of a'), tokens.callerWith('token of b')?.grant.name]).toEqual([undefined, 'b'])
})

test('new tokens differ, and have 256 bits', () => {
  expect(newToken()).toMatch(/^tmk_[\w-]{43}$/)
  expect(newToken()).not.toBe(newToken())
})

describe('a file that changes', () => {
  test('adds and revokes; those that stay are the same callers', () => {
    using here = world(entry('a'), entry('b'), entry('c'))
    const [a, b, c] = ['a', 'b', 'c'].map((name) => here.tokens.callerWith(`token of ${name}`)!)
    here.put(tokensText([entry('a'), entry('c', { rights: ['submit'] }), entry('d')]))
    here.tokens.look()
    expect([a!.signal.aborted, b!.signal.aborted, c!.signal.aborted]).toEqual([false, true, true])
    expect(here.tokens.callerWith('token of a')).toBe(a!)
    expect(here.tokens.callerWith('token of b')).toBeUndefined()
    expect(here.tokens.callerWith('token of c')?.grant.rights).toEqual(['submit'])
    expect(here.tokens.callerWith('token of d')?.grant.name).toBe('d')
    expect(here.tokens.fault).toBeUndefined()
  })

  test('says anew where tenants connect to', () => {
    using here = world(entry('a'))
    const reach = () => ['acme', 'globex'].map((tenant) => here.tokens.reachOf(tenant).map(({ text }) => text))
    expect(reach()).toEqual([[], []])
    const a = here.tokens.callerWith('token of a')!
    here.put(tokensText([entry('a')], [{ name: 'acme', reach: ['10.0.0.0/8', 'db.internal:5432'] }]))
    here.tokens.look()
    expect([reach(), a.signal.aborted]).toEqual([[['10.0.0.0/8', 'db.internal:5432'], []], false])
    here.put(tokensText([entry('a')]))
    here.tokens.look()
    expect(reach()).toEqual([[], []])
  })

  test('to something that cannot be used leaves the earlier tokens in force, and says so once', () => {
    using here = world(entry('a'))
    const a = here.tokens.callerWith('token of a')!
    for (const [spoil, fault] of [
      [() => here.put('{'), 'it is not JSON'],
      [() => unlinkSync(here.path), 'ENOENT'],
      [() => here.put(' '.repeat(MAX_TOKENS_FILE_BYTES + 1)), `it has ${MAX_TOKENS_FILE_BYTES + 1} bytes`],
    ] as const) {
      spoil()
      const before = here.texts.length
      here.tokens.look()
      here.tokens.look()
      expect(here.tokens.fault).toStartWith(fault)
      expect(here.texts.length).toBe(before + 1)
      expect(here.tokens.callerWith('token of a')).toBe(a)
    }
    here.put(tokensText([entry('a')]))
    here.tokens.look()
    expect([here.tokens.fault, a.signal.aborted]).toEqual([undefined, false])
  })

  test('that others can write is not used', () => {
    using here = world(entry('a'))
    here.put(tokensText([entry('evil', { rights: ['operate'] })]))
    chmodSync(here.path, 0o666)
    here.tokens.look()
    expect(here.tokens.fault).toBe('other users can write it (chmod 600 it)')
    expect(here.tokens.callerWith('token of evil')).toBeUndefined()
    expect(() => new KnownTokens(here.path, memoryLog().log)).toThrow('other users can write it')
  })
})

test('an expired token is unknown, and what it reads ends with the next look', () => {
  using here = world(
    entry('late', { expires: '2020-01-01T00:00:00Z' }),
    entry('soon', { expires: '2999-01-01T00:00:00Z' }),
  )
  expect(here.tokens.callerWith('token of late')).toBeUndefined()
  const soon = here.tokens.callerWith('token of soon')!
  here.tokens.look()
  expect(soon.signal.aborted).toBe(false)
})

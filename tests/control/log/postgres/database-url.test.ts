/** Addresses of PostgreSQL servers: what they say, and that no error repeats a password. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { MAX_DATABASE_URLS, parseDatabaseUrls } from '../../../../control/log/postgres/database-url.ts'

const parse = (text: string) => parseDatabaseUrls([text], '--database')[0]!

function errorOf(...texts: string[]): string {
  try {
    parseDatabaseUrls(texts, '--database')
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('no error')
}

describe('an address', () => {
  test('has defaults', () => {
    expect(parse('postgres://app@db.example/mill')).toEqual({
      ...{ hostname: 'db.example', port: 5432, username: 'app', password: '', database: 'mill' },
      ...{ sslMode: 'prefer', caFile: undefined, isPreparing: true },
      ...{ shown: 'postgres://app@db.example:5432/mill', place: 'db.example:5432/mill' },
    })
  })

  test.each([
    ['postgresql://app:p@127.0.0.1:6000/mill', { hostname: '127.0.0.1', port: 6000, password: 'p' }],
    ['postgres://app@[::1]/mill', { hostname: '::1', shown: 'postgres://app@[::1]:5432/mill' }],
    ['postgres://a%20b:%2F%40%3a%25@h/d%22', { username: 'a b', password: '/@:%', database: 'd"' }],
    ['postgres://app:p@ss@h/mill', { password: 'p@ss', hostname: 'h' }],
    ['postgres://app@h/mill?prepare=false', { isPreparing: false }],
    ['postgres://app@h/mill?prepare=true', { isPreparing: true }],
    ['postgres://app@h/mill?sslmode=require', { sslMode: 'require' }],
    ['postgres://app@h/mill?sslrootcert=/ca.pem', { sslMode: 'verify-full', caFile: '/ca.pem' }],
    ['postgres://app@h/mill?sslrootcert=/ca.pem&sslmode=verify-ca', { sslMode: 'verify-ca' }],
    [
      'postgres://app:p@h/mill?host=/run/postgresql',
      { hostname: '/run/postgresql', sslMode: 'disable', shown: 'postgres://app@/run/postgresql/.s.PGSQL.5432/mill' },
    ],
  ])('%s', (text, expected) => {
    expect(parse(text)).toMatchObject(expected as never)
  })

  test.each([
    ['', 'not of the form'],
    ['db.example', 'not of the form'],
    ['mysql://app@h/d', 'not of the form'],
    ['http://app@h/d', 'not of the form'],
    ['postgres://app@h:99999/d', 'not of the form'],
    ['postgres://a,b/d', 'names no user'],
    ['postgres://h/d', 'names no user'],
    ['postgres://app@h', 'names no database'],
    ['postgres://app@h/', 'names no database'],
    ['postgres://app@h/a/b', 'names no database'],
    ['postgres://app@h/d#x', '%23'],
    ['postgres://app@h/d?sslmode=on', 'sslmode must be disable, allow, prefer, require, verify-ca or verify-full'],
    ['postgres://app@h/d?sslmode=require&sslrootcert=/ca', 'verify-full'],
    ['postgres://app@h/d?ssl_mode=require', 'did you mean sslmode?'],
    ['postgres://app@h/d?search_path=x', 'unknown parameter "search_path"'],
    ['postgres://app@h/d?prepare=no', 'prepare must be true or false'],
    ['postgres://app@h/d?prepare=', 'prepare needs a value'],
    ['postgres://app@h/d?prepare=true&prepare=false', 'prepare twice'],
    ['postgres://app@h/d?host=other', 'host must be the directory of a Unix socket'],
    ['postgres://app:%@h/d', '%25'],
    ['postgres://app:%00@h/d', 'zero byte'],
  ])('is refused: %s', (text, expected) => {
    expect(errorOf(text)).toContain(expected)
  })
})

test('several addresses are numbered in errors, and none is there twice', () => {
  expect(errorOf('postgres://app@a/d', 'postgres://b/d')).toStartWith('address 2 of --database names no user')
  expect(errorOf('postgres://app:x@a/d', 'postgres://app:y@a:5432/d')).toBe(
    '--database has postgres://app@a:5432/d twice',
  )
  const many = Array.from({ length: MAX_DATABASE_URLS + 1 }, (_, i) => `postgres://app@h${i}/d`)
  expect(errorOf(...many)).toContain(`at most ${MAX_DATABASE_URLS}`)
  expect(parseDatabaseUrls(many.slice(1), '--database')).toHaveLength(MAX_DATABASE_URLS)
})

/** Letters that no text of ours has in this order, with characters that mean something in addresses. */
const passwords = fc
  .tuple(
    fc.string({ unit: fc.constantFrom(...'q7/?#@:%&= \\"\'[]é😀') }),
    fc.string({ unit: fc.constantFrom(...'q7/?#@:%&= ') }),
  )
  .map(([before, after]) => `zq7x${before}zq7y${after}zq7z`)

test('every password comes back from its encoded form', () => {
  fc.assert(
    fc.property(passwords, (password) => {
      const url = parse(`postgres://app:${encodeURIComponent(password)}@h/d`)
      expect(url).toMatchObject({ password, username: 'app', hostname: 'h', database: 'd' })
      expect(url.shown).not.toContain('zq7')
    }),
  )
})

test('no error repeats a piece of a password, however wrong the address is', () => {
  const prefix = fc.constantFrom(
    'postgres://app:',
    'postgres://app:1',
    'mysql://app:',
    'postgres//app:',
    'postgres://:',
  )
  const suffix = fc.constantFrom('@h/d', '@h', '@/d', '@h/d?sslmode=on', '@h/d?x=y', '@h:port/d')
  fc.assert(
    fc.property(prefix, passwords, suffix, (before, password, after) => {
      try {
        for (const { shown } of parseDatabaseUrls([before + password + after], '--database')) {
          expect(shown).not.toContain('zq7')
        }
      } catch (error) {
        expect((error as Error).name).toBe('UsageError')
        expect((error as Error).message).not.toMatch(/zq7/)
      }
    }),
    { numRuns: 500 },
  )
})

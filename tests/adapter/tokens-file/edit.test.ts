/** Tokens files in TOML: what is written is read as it was, and what people wrote stays. */
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { editTokens, tokensIn } from '../../../adapter/tokens-file/edit.ts'
import { tokenHash } from '../../../shared/http/known-tokens.ts'
import { type TokenEntry, type TokensForm, tokensFileIn, tokensText } from '../../../shared/http/token-entries.ts'
import { tempDir } from '../../support/temp.ts'

const entry = (name: string, more: Partial<TokenEntry> = {}): TokenEntry => ({
  ...{ name, hash: tokenHash(name), rights: ['read', 'submit'] },
  ...more,
})

const add = (path: string, added: TokenEntry) => editTokens(path, (entries) => [...entries, added])
const remove = (path: string, name: string) =>
  editTokens(path, (entries) => entries.filter((other) => other.name !== name))

test('comments and other tokens stay as they are', async () => {
  using temp = tempDir()
  const path = join(temp.path, 'tokens.toml')
  const [head, a, b] = [
    '# who may what\n\n',
    `[[tokens]] # for CI\nname = 'a'\nrights = ["read"]\nhash = "${tokenHash('a')}"\n\n`,
    `  [[ tokens ]]\nname = "b"\nhash = "${tokenHash('b')}"\nrights = [\n  "read", # sees\n]\n[tokens.labels]\nteam = "a"`,
  ]
  writeFileSync(path, head + a + b)
  await add(path, entry('c'))
  expect(readFileSync(path, 'utf8')).toStartWith(`${head}${a}${b}\n[[tokens]]\nname = "c"\n`)
  await remove(path, 'a')
  expect(readFileSync(path, 'utf8')).toStartWith(`${head}${b}\n[[tokens]]`)
  expect(tokensIn(path).map(({ name }) => name)).toEqual(['b', 'c'])
  expect(tokensIn(path)[0]!.labels).toEqual({ team: 'a' })
})

test.each(['tokens = []\n', `tokens = [{ name = "a", hash = "${tokenHash('a')}", rights = ["read"] }]\n`])(
  'a file with %p, to which no table can be added, is written anew',
  async (text) => {
    using temp = tempDir()
    const path = join(temp.path, 'tokens.toml')
    writeFileSync(path, text)
    const before = tokensIn(path)
    await add(path, entry('c'))
    expect(tokensIn(path)).toEqual([...before, entry('c')])
    for (const { name } of tokensIn(path)) await remove(path, name)
    expect(tokensIn(path)).toEqual([])
  },
)

test.each(['json', 'toml'])('what a file in %s says of tenants stays', async (form) => {
  using temp = tempDir()
  const path = join(temp.path, `tokens.${form}`)
  const tenants = [
    { name: 'acme', reach: ['10.1.2.0/24'] },
    { name: 'globex', reach: ['db.internal:5432'] },
  ]
  const tables = tenants.map(({ name, reach }) => `[[tenants]] # of ${name}\nname = "${name}"\nreach = ["${reach}"]\n`)
  const a = `[[tokens]]\nname = "a"\nhash = "${tokenHash('a')}"\nrights = ["read"]\n`
  writeFileSync(path, form === 'toml' ? tables[0] + a + tables[1] : tokensText([entry('a')], tenants))
  const inFile = () => tokensFileIn(readFileSync(path, 'utf8'), form as TokensForm)
  await add(path, entry('b'))
  expect([inFile().tenants, inFile().tokens.length]).toEqual([tenants, 2])
  await remove(path, 'a')
  await remove(path, 'b')
  expect(inFile()).toEqual({ tokens: [], tenants })
  if (form !== 'toml') return
  writeFileSync(path, tables[0] + a + tables[1])
  await add(path, entry('c'))
  await remove(path, 'a')
  expect(readFileSync(path, 'utf8')).toStartWith(`${tables.join('')}[[tokens]]\nname = "c"`)
})

const texts = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 10 })
const entries = fc.record(
  {
    tenant: fc.constant('acme'),
    expires: fc.constant('2027-01-31T00:00:00Z'),
    approve_own: fc.boolean(),
    types: fc.uniqueArray(texts, { minLength: 1, maxLength: 3 }),
    labels: fc.dictionary(texts, texts, { minKeys: 1, maxKeys: 3 }),
    graphs_per_minute: fc.integer({ min: 1, max: 1_000 }),
  },
  { requiredKeys: [] },
)

test('what is written is read as it was', async () => {
  using temp = tempDir()
  const path = join(temp.path, 'tokens.toml')
  await fc.assert(
    fc.asyncProperty(fc.array(entries, { maxLength: 4 }), async (some) => {
      writeFileSync(path, 'tokens = []\n')
      const plain = some.map((more, i) => entry(`t${i}`, JSON.parse(JSON.stringify(more))))
      for (const one of plain) await add(path, one)
      expect(tokensIn(path)).toEqual(plain)
      await remove(path, 't1')
      expect(tokensIn(path)).toEqual(plain.filter(({ name }) => name !== 't1'))
    }),
    { numRuns: 30 },
  )
})

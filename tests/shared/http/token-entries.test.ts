import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { RIGHTS } from '../../../shared/contract/rights.ts'
import { tokenHash } from '../../../shared/http/known-tokens.ts'
import {
  grantIn,
  grantText,
  MAX_TENANT_REACH,
  MAX_TENANTS,
  MAX_TOKEN_NAME_CHARACTERS,
  MAX_TOKEN_RULES,
  MAX_TOKENS,
  type TokenEntry,
  tokenEntriesIn,
  tokensFileIn,
  tokensText,
} from '../../../shared/http/token-entries.ts'

const hash = tokenHash('t')
const entry = { name: 'ci', hash, rights: ['read'] }
const fileOf = (...tokens: unknown[]) => JSON.stringify({ tokens })
const acme = { name: 'acme', reach: ['10.1.2.0/24', 'intranet.example:8443', '*.acme.internal'] }
const withTenants = (...tenants: unknown[]) => JSON.stringify({ tokens: [], tenants })

describe('a tokens file', () => {
  test.each<[text: string, fault: string]>([
    ['', 'it is not JSON'],
    ['[]', 'expected an object with the list tokens, and nothing else'],
    ['{"tokens":{}}', 'expected an object with the list tokens, and nothing else'],
    ['{"tokens":[],"token":[]}', 'expected an object with the list tokens, and nothing else'],
    [fileOf('ci'), 'tokens[0]: expected object, got string'],
    [fileOf(null), 'tokens[0]: expected object, got null'],
    [fileOf({ ...entry, right: [] }), 'tokens[0]: unknown field "right" (did you mean "rights"?)'],
    [fileOf({ ...entry, __proto__: null, constructor: 1 }), 'tokens[0]: unknown field "constructor"'],
    [fileOf({ name: 'ci', rights: ['read'] }), 'tokens[0].hash is required'],
    [fileOf({ hash, rights: ['read'] }), 'tokens[0].name is required'],
    [fileOf({ name: 'ci', hash }), 'tokens[0].rights is required'],
    [fileOf({ ...entry, name: 'c i' }), 'tokens[0].name: expected'],
    [fileOf({ ...entry, name: 'operate' }), 'tokens[0].name: expected'],
    [fileOf({ ...entry, name: 'a'.repeat(MAX_TOKEN_NAME_CHARACTERS + 1) }), 'tokens[0].name: expected'],
    [fileOf({ ...entry, hash: 'sha256:t' }), 'tokens[0].hash: expected sha256:'],
    [fileOf({ ...entry, hash: hash.toUpperCase() }), 'tokens[0].hash: expected sha256:'],
    [fileOf({ ...entry, rights: [] }), 'tokens[0].rights: expected a list of read'],
    [fileOf({ ...entry, rights: ['admin'] }), 'tokens[0].rights: expected a list of read'],
    [fileOf({ ...entry, rights: 'read' }), 'tokens[0].rights: expected a list of read'],
    [fileOf({ ...entry, expires: '2027-01-31' }), 'tokens[0].expires: expected a time in UTC'],
    [fileOf({ ...entry, expires: '2027-13-31T00:00:00Z' }), 'tokens[0].expires: expected a time in UTC'],
    [fileOf({ ...entry, approve_own: 1 }), 'tokens[0].approve_own: expected true or false'],
    [fileOf({ ...entry, types: [] }), 'tokens[0].types: expected'],
    [fileOf({ ...entry, types: Array(MAX_TOKEN_RULES + 1).fill('os') }), 'tokens[0].types: expected'],
    [fileOf({ ...entry, labels: {} }), 'tokens[0].labels: expected'],
    [fileOf({ ...entry, labels: { team: 1 } }), 'tokens[0].labels: expected'],
    [fileOf({ ...entry, graphs_per_minute: 0 }), 'tokens[0].graphs_per_minute: expected'],
    [fileOf({ ...entry, live_tasks: 1.5 }), 'tokens[0].live_tasks: expected'],
    [fileOf(entry, { ...entry, hash: tokenHash('u') }), 'tokens[1].name: another token has it'],
    [fileOf(entry, { ...entry, name: 'cd' }), 'tokens[1].hash: another token has it'],
    ['{"tokens":[],"tenants":null}', 'expected an object with the list tokens, and nothing else but the list tenants'],
    [withTenants('acme'), 'tenants[0]: expected object, got string'],
    [withTenants({ ...acme, reech: [] }), 'tenants[0]: unknown field "reech" (did you mean "reach"?)'],
    [withTenants({ name: 'acme' }), 'tenants[0].reach is required'],
    [withTenants({ ...acme, name: 'a b' }), 'tenants[0].name: expected'],
    ...[[], ['*'], ['http://a/'], ['10.1.2.3/24'], ['a:0'], [7], 'a', Array(MAX_TENANT_REACH + 1).fill('a')].map(
      (reach): [string, string] => [withTenants({ ...acme, reach }), 'tenants[0].reach: expected 1 to 64 networks'],
    ),
    [withTenants(acme, { ...acme, reach: ['b'] }), 'tenants[1].name: it stands twice'],
    [withTenants(...Array(MAX_TENANTS + 1).fill(acme)), `it has ${MAX_TENANTS + 1} tenants (at most ${MAX_TENANTS})`],
    [fileOf(...Array(MAX_TOKENS + 1).fill(entry)), `it has ${MAX_TOKENS + 1} tokens (at most ${MAX_TOKENS})`],
  ])('%# is refused with its fault', (text, fault) => {
    expect(() => tokenEntriesIn(text)).toThrow(fault)
  })

  test('in TOML says the same as in JSON', () => {
    const text = `# ours\n[[tokens]]\nname = "ci"\nhash = "${hash}"\nrights = ["read"]\n[tokens.labels]\nteam = "a"\n`
    expect(tokenEntriesIn(text, 'toml')).toEqual([{ ...entry, labels: { team: 'a' } } as TokenEntry])
    expect(() => tokenEntriesIn('[[tokens]', 'toml')).toThrow('it is not TOML')
    expect(() => tokenEntriesIn(text.replace('name', 'nane'), 'toml')).toThrow('tokens[0]: unknown field "nane"')
    expect(() => tokenEntriesIn('', 'toml')).toThrow('expected an object with the list tokens')
  })

  test('says where tenants may connect to, to a service of graphs alone', () => {
    expect(tokensFileIn(withTenants(acme)).tenants).toEqual([acme])
    const text = `tokens = []\n[[tenants]]\nname = "acme"\nreach = ${JSON.stringify(acme.reach)}\n`
    expect(tokensFileIn(text, 'toml')).toEqual({ tokens: [], tenants: [acme] })
    expect(() => tokensFileIn(text, 'toml', { hasOnlyRights: true })).toThrow(
      'tenants: only the control service knows it (remove it)',
    )
  })

  test('may have no tokens, and the most there can be', () => {
    expect(tokenEntriesIn(fileOf())).toEqual([])
    const many = Array.from({ length: MAX_TOKENS }, (_, i) => ({ ...entry, name: `t${i}`, hash: tokenHash(`${i}`) }))
    expect(tokenEntriesIn(fileOf(...many))).toHaveLength(MAX_TOKENS)
  })
})

const rights = fc.subarray([...RIGHTS], { minLength: 1 })
const grants = fc.record(
  {
    name: fc.stringMatching(/^[A-Za-z0-9][\w.@-]{0,20}$/).filter((name) => !RIGHTS.some((right) => right === name)),
    rights,
    approve_own: fc.boolean(),
    types: fc.uniqueArray(fc.constantFrom('os', 'runtime', 'mcp'), { minLength: 1 }),
    labels: fc.dictionary(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), { minKeys: 1, maxKeys: 5 }),
    graphs_per_minute: fc.integer({ min: 1, max: 1_000 }),
    live_tasks: fc.integer({ min: 1, max: 1_000 }),
  },
  { requiredKeys: ['name', 'rights'] },
)

test('what is written is read as it was', () => {
  fc.assert(
    fc.property(grants, (grant) => {
      const plain = JSON.parse(JSON.stringify(grant))
      expect(tokenEntriesIn(tokensText([{ ...plain, hash }]))).toEqual([{ ...plain, hash }])
      expect(grantIn(grantText(grant))).toEqual(plain)
    }),
  )
})

test('a grant of another replica has no hash and no expiry', () => {
  expect(() => grantIn(JSON.stringify({ name: 'a', rights: ['read'], hash }))).toThrow('unknown field "hash"')
})

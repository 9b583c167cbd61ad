/**
 * Goal: the rules in force are those of the last file that could be used, from the moment on at which it stands there; a fault is
 * told once, and none opens a secret.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, chownSync, renameSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { UsageError } from '../../../shared/contract/errors.ts'
import {
  MAX_SECRET_RULES_BYTES,
  ofTokenTenant,
  type SecretAsker,
  SecretRules,
} from '../../../shared/files/secret-rules.ts'
import { rootTest } from '../../support/launchers.ts'
import { type MemoryLog, memoryLog } from '../../support/memory-log.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

let temp: TempDir
let path: string
let log: MemoryLog
beforeEach(() => {
  temp = tempDir()
  path = join(temp.path, 'secrets.toml')
  log = memoryLog()
})
afterEach(() => temp[Symbol.dispose]())

const put = (text: string) => writeFileSync(path, text, { mode: 0o644 })
const open = () => new SecretRules(path, log.log)
const messages = () => log.lines().map(({ msg }) => msg)

const DENIED = 'decides)'
const FOR_A = '[token]\ntenants = ["a"]\n'
const runtime = (tenant?: string): SecretAsker => ({ type: 'runtime', tenant })

describe('a secret', () => {
  test.each<[string, string, SecretAsker, string | undefined]>([
    ['without a table goes to every task', '[other]\ntenants = []', { type: 'shell' }, undefined],
    ['with an empty table goes to every task', '[token]', runtime(), undefined],
    ['goes to a tenant of its table', FOR_A, runtime('a'), undefined],
    [
      'goes to no other',
      FOR_A,
      runtime('b'),
      'the secret token is not for tasks of tenant b (its table in --secrets-rules decides)',
    ],
    [
      'goes to no task without a tenant',
      FOR_A,
      runtime(),
      'the secret token is not for tasks without a tenant (its table in --secrets-rules decides)',
    ],
    [
      'goes to no tenant of an empty list',
      '[token]\ntenants = []',
      runtime('a'),
      'the secret token is not for tasks of tenant a (its table in --secrets-rules decides)',
    ],
    ['goes to a tenant of a token that its table names', FOR_A, { ...runtime(), ...ofTokenTenant('a') }, undefined],
    [
      'without tenants in its table goes to no tenant of a token',
      '[token]\ntypes = ["runtime"]',
      { ...runtime(), ...ofTokenTenant('a') },
      'the secret token is not for tasks of tenant a (its table in --secrets-rules decides)',
    ],
    [
      'without a table goes to no tenant of a token',
      '',
      { ...runtime(), ...ofTokenTenant('a') },
      'the secret token is not for tasks of tenant a (its table in --secrets-rules decides)',
    ],
    ['goes to a type of its table', '[token]\ntypes = ["shell"]', { type: 'shell' }, undefined],
    [
      'goes to no other type',
      '[token]\ntypes = ["shell"]',
      runtime('a'),
      'the secret token is not for tasks of type runtime (its table in --secrets-rules decides)',
    ],
    [
      'needs both',
      '[token]\ntypes = ["runtime"]\ntenants = ["a"]',
      runtime('b'),
      'the secret token is not for tasks of tenant b (its table in --secrets-rules decides)',
    ],
    [
      'has a name of any kind',
      '["__proto__"]\ntenants = []\n["token"]\ntenants = []',
      runtime('a'),
      'the secret token is not for tasks of tenant a (its table in --secrets-rules decides)',
    ],
  ])('%s', (_, text, asker, expected) => {
    put(text)
    expect(open().whyDenied('token', asker)).toBe(expected)
  })

  test('__proto__ has the rules of its own table', () => {
    put('["__proto__"]\ntenants = ["a"]')
    const rules = open()
    expect(rules.whyDenied('__proto__', runtime('b'))).toContain(DENIED)
    expect(rules.whyDenied('constructor', runtime('b'))).toBeUndefined()
  })
})

describe('a file that cannot be used', () => {
  const faults: readonly (readonly [string, () => void, string])[] = [
    ['is gone', () => rmSync(path), 'does not exist'],
    [
      'is a directory',
      () => {
        rmSync(path)
        symlinkSync(temp.path, path)
      },
      'is not a file',
    ],
    [
      'is too large',
      () => put(`#${'x'.repeat(MAX_SECRET_RULES_BYTES)}`),
      `has ${MAX_SECRET_RULES_BYTES + 1} bytes (at most ${MAX_SECRET_RULES_BYTES})`,
    ],
    [
      'is open to others',
      () => {
        put(FOR_A.replace('a', 'b'))
        chmodSync(path, 0o664)
      },
      'can be changed by other users (chmod 644 it)',
    ],
    ['is no TOML', () => put('[token'), 'is no TOML: '],
    ['has a value in place of a table', () => put('token = "a"'), 'has [token], which is no table'],
    ['has a table of no secret', () => put('["a b"]'), 'has ["a b"], which is no name of a secret'],
    [
      'has an unknown key',
      () => put('[token]\ntenant = ["a"]'),
      'has [token] with the unknown key tenant (known: tenants, types, hosts; quote a name with dots)',
    ],
    [
      'has a text in place of a list',
      () => put('[token]\ntenants = "a"'),
      'has [token] with tenants that are no list of texts',
    ],
    [
      'has a host that is none',
      () => put('[token]\nhosts = ["a.example", "https://b.example"]'),
      'has [token] with hosts[1]: expected a host, not a URL, got "https://b.example"',
    ],
    [
      'has a number in a list',
      () => put('[token]\ntypes = ["shell", 1]'),
      'has [token] with types that are no list of texts',
    ],
  ]
  test.each(faults)('because it %s, is refused at the start', (_, spoil, message) => {
    put(FOR_A)
    spoil()
    expect(open).toThrow(UsageError)
    expect(open).toThrow(`--secrets-rules ${path} ${message}`)
  })

  test.each(faults)(
    'because it %s, keeps the rules before it, and says so once, until it is mended',
    (_, spoil, message) => {
      put(FOR_A)
      const rules = open()
      expect(rules.fault()).toBeUndefined()
      spoil()
      for (let i = 0; i < 3; i++) {
        expect(rules.fault()).toBe(
          'the file of --secrets-rules cannot be used: the rules before it stay in force (see the log)',
        )
        expect(rules.whyDenied('token', runtime('b'))).toContain(DENIED)
        expect(rules.whyDenied('token', runtime('a'))).toBeUndefined()
      }
      expect(log.lines()).toMatchObject([{ level: 'error', file: path, cause: expect.stringContaining(message) }])
      rmSync(path, { force: true })
      put('[token]\ntenants = ["b"]')
      expect(rules.whyDenied('token', runtime('a'))).toContain(DENIED)
      expect(rules.fault()).toBeUndefined()
      expect(messages().at(-1)).toBe('the rules of the secrets have changed')
    },
  )

  rootTest('because it belongs to another user, is refused', () => {
    put(FOR_A)
    chownSync(path, 12_345, 0)
    expect(open).toThrow('belongs to user 12345 (chown it to user 0 of the service, or to root)')
  })
})

test('a change counts at the next question, however it is made and whatever its times are', () => {
  const change = fc.constantFrom('written over', 'renamed over')
  const tenants = fc.constantFrom('a', 'b', 'c')
  fc.assert(
    fc.property(fc.array(fc.tuple(change, tenants), { minLength: 1, maxLength: 8 }), (changes) => {
      put(FOR_A)
      const rules = open()
      for (const [how, tenant] of changes) {
        const target = how === 'written over' ? path : `${path}.new`
        writeFileSync(target, `[token]\ntenants = ["${tenant}"]\n`, { mode: 0o644 })
        utimesSync(target, 1, 1)
        if (target !== path) renameSync(target, path)
        expect(['a', 'b', 'c'].filter((asker) => rules.whyDenied('token', runtime(asker)) === undefined)).toEqual([
          tenant,
        ])
      }
    }),
    { numRuns: 50 },
  )
  expect(messages()).not.toContain('the rules of the secrets cannot be used: those before stay in force')
})

test('a link to another file is followed, as Kubernetes mounts files', () => {
  put(FOR_A)
  const link = join(temp.path, 'link')
  symlinkSync(path, link)
  const rules = new SecretRules(link, log.log)
  writeFileSync(join(temp.path, 'next'), '[token]\ntenants = ["b"]', { mode: 0o644 })
  symlinkSync(join(temp.path, 'next'), join(temp.path, 'link.new'))
  renameSync(join(temp.path, 'link.new'), link)
  expect(rules.whyDenied('token', runtime('b'))).toBeUndefined()
})

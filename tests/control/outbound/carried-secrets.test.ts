/**
 * Goal: what a request with secrets gets back shows none of them, wherever and however it stands there. Method: random values
 * in random places of random JSON, encoded in the ways that are recognized, and cut anywhere.
 */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { CarriedSecrets, SecretRefused } from '../../../control/outbound/carried-secrets.ts'
import { SecretRules } from '../../../shared/files/secret-rules.ts'
import { SecretsDirectory } from '../../../shared/files/secrets-directory.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

let temp: TempDir
let directory: SecretsDirectory
const put = (name: string, value: string) => writeFileSync(join(directory.path, name), value, { mode: 0o600 })

beforeAll(() => {
  temp = tempDir()
  const path = join(temp.path, 'secrets')
  mkdirSync(path, { mode: 0o700 })
  const rules = join(temp.path, 'rules.toml')
  writeFileSync(rules, '[s]\nhosts = ["a.example", "*.b.example"]\n', { mode: 0o644 })
  directory = new SecretsDirectory(path, [], new SecretRules(rules, silentLog()))
})
afterAll(() => temp[Symbol.dispose]())

function carrying(value: string): CarriedSecrets {
  put('s', value)
  const secrets = new CarriedSecrets(directory, 'http', undefined)
  expect(secrets.textOf({ name: 's', prefix: 'Bearer ', suffix: '!', isMasked: true }, false)).toBe(`Bearer ${value}!`)
  return secrets
}

const ENCODINGS: readonly ((value: string) => string)[] = [
  (value) => value,
  (value) => Buffer.from(value).toString('base64'),
  (value) => Buffer.from(`x${value}`).toString('base64'),
  (value) => Buffer.from(`xx${value}`).toString('base64url'),
  encodeURIComponent,
  (value) => JSON.stringify(value).slice(1, -1),
  (value) => new URL(`http://h/?${value.replaceAll('#', '%23')}`).search.slice(1),
]

const values = fc
  .string({ unit: fc.constantFrom(...'abcXYZ019"\'<>|^%&+=/ ~é€'), minLength: 8, maxLength: 40 })
  .filter((value) => value.trim() === value)
const places: fc.Arbitrary<(text: string) => unknown> = fc.constantFrom<(text: string) => unknown>(
  (text) => text,
  (text) => [1, { a: [text, null] }],
  (text) => ({ [text]: true }),
  (text) => ({ a: { b: `before ${text} after` } }),
)

test('a masked answer holds a value in no form', () => {
  fc.assert(
    fc.property(values, places, fc.constantFrom(...ENCODINGS), (value, place, encode) => {
      const encoded = encode(value)
      const masked = JSON.stringify(runSync(carrying(value).masked(place(encoded))))
      expect(masked).toContain('***')
      expect(masked).not.toContain(JSON.stringify(encoded).slice(1, -1))
    }),
  )
})

test('a masked stream is the same wherever it was cut', async () => {
  await fc.assert(
    fc.asyncProperty(values, fc.array(fc.nat(120), { maxLength: 6 }), async (value, cuts) => {
      const whole = Buffer.from(`${'.'.repeat(20)}${value}${value.slice(0, 5)}|${value}`)
      const at = [0, ...cuts.map((cut) => Math.min(cut, whole.length)), whole.length].toSorted((a, b) => a - b)
      const parts = at.slice(1).map((to, i) => whole.subarray(at[i], to))
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          for (const part of parts) controller.enqueue(part)
          controller.close()
        },
      })
      const text = await new Response(carrying(value).maskedStream(stream)).text()
      expect(text).not.toContain(value)
      expect(text.startsWith(`${'.'.repeat(20)}***`)).toBe(true)
    }),
  )
})

test('what has no value stays what it is', () => {
  const answer = { a: [1, 2.5, true, null, 'text', { '': {} }], ['__proto__']: 1 }
  expect(runSync(carrying('value-1234').masked(answer))).toEqual(answer)
  expect(runSync(carrying('12345678').masked({ n: 12345678, m: 8 }))).toEqual({ n: '***', m: 8 })
})

test('a header and a URL take no line break and no other alphabet, a body does', () => {
  for (const value of ['a\r\nX-Injected: 1', 'tab\tbed', 'nul\0', '€uro']) {
    put('s', value)
    const text = (isLine: boolean) =>
      new CarriedSecrets(directory, 'http', undefined).textOf(
        { name: 's', prefix: '', suffix: '', isMasked: true },
        isLine,
      )
    expect(() => text(true)).toThrow('the secret s has a line break or a character that no header and no URL can hold')
    expect(text(false)).toBe(value)
  }
})

test('a request goes to the hosts of its secrets, under their names', () => {
  const secrets = carrying('value-1234')
  const check = (url: string, headers = {}) => secrets.check(new URL(url), new Headers(headers))
  check('https://a.example/x')
  check('https://x.b.example/', { Host: 'X.b.example' })
  for (const url of [
    'https://b.example/',
    'http://a.example/',
    'https://a.example:8443/',
    'https://a.example@c.example/',
  ])
    expect(() => check(url)).toThrow(SecretRefused)
  expect(() => check('https://a.example/', { Host: 'x.b.example' })).toThrow('no Host header but that of its URL')
  const none = new CarriedSecrets(directory, 'http', undefined)
  none.check(new URL('https://c.example/'), new Headers({ Host: 'any.example' }))
})

test('the address that a secret is, is masked by its path, too', () => {
  const secrets = carrying('https://a.example/hooks/T0/B0?x=1')
  expect(secrets.maskedText('POST /hooks/T0/B0?x=1 at a.example')).toBe('POST *** at a.example')
  expect(carrying('https://a.example/').maskedText('GET / HTTP/1.1')).toBe('GET / HTTP/1.1')
})

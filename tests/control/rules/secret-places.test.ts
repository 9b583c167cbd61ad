/** Goal: only what was submitted as a secret, where an executor sends it, is one. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { findPlaceholders, type Path } from '../../../control/rules/placeholders.ts'
import { InputWithSecrets, secretPlaceFault, secretPlacesOf } from '../../../control/rules/secret-places.ts'
import { MAX_SECRET_AFFIX_CHARACTERS } from '../../../shared/contract/secrets.ts'
import { runSync } from '../../../shared/process/steps.ts'

const HTTP = { type: 'os', toolName: 'http' }

test.each<[string, { type: string; toolName: string | undefined }, Path, boolean]>([
  ['the url', HTTP, ['url'], true],
  ['the body', HTTP, ['body'], true],
  ['a header', HTTP, ['headers', 'Authorization'], true],
  ['all headers', HTTP, ['headers'], false],
  ['below a header', HTTP, ['headers', 'a', 'b'], false],
  ['the method', HTTP, ['method'], false],
  ['a file', HTTP, ['save_to'], false],
  ['the whole input', HTTP, [], false],
  ['another os tool', { type: 'os', toolName: 'shell' }, ['url'], false],
  ['an argument', { type: 'mcp', toolName: 'server/tool' }, ['a', 0, 'b'], true],
  ['all arguments', { type: 'mcp', toolName: 'server/tool' }, [], false],
  ['an argument of call', { type: 'mcp', toolName: 'call' }, ['arguments', 'a'], true],
  ['the server of call', { type: 'mcp', toolName: 'call' }, ['server'], false],
  ['all arguments of call', { type: 'mcp', toolName: 'call' }, ['arguments'], false],
  ['discover', { type: 'mcp', toolName: 'discover' }, ['server'], false],
  ['a runtime task', { type: 'runtime', toolName: 'script' }, ['stdin'], false],
  ['a wait', { type: 'wait', toolName: undefined }, ['http', 'url'], false],
])('%s', (_, tool, path, isSent) => {
  expect(secretPlaceFault(tool, path) === undefined).toBe(isSent)
})

describe('an input with secrets', () => {
  const data = fc.jsonValue({ maxDepth: 3 })

  test('has their texts in their places, and all else as it was', () => {
    fc.assert(
      fc.property(fc.array(data, { maxLength: 5 }), fc.nat(5), fc.string(), (members, at, text) => {
        const clean = JSON.parse(JSON.stringify(members).replaceAll('"$', '"_')) as unknown[]
        const input = { a: clean.toSpliced(at, 0, { $secret: 's' }), b: { $literal: { $secret: 't' } } }
        const places = secretPlacesOf({ type: 'mcp', toolName: 'x/y' }, runSync(findPlaceholders(input)).places)
        const filled = new InputWithSecrets(input, places).with(({ secret }) => secret.name + text)
        expect(filled).toEqual({ a: clean.toSpliced(at, 0, `s${text}`), b: input.b })
      }),
    )
  })

  test('is none that JSON can forge', () => {
    const forged = JSON.parse('{"input":{},"places":[{"path":["url"],"secret":{"name":"s"}}]}')
    expect(forged instanceof InputWithSecrets).toBe(false)
  })

  test.each<[object, string | undefined]>([
    [{ $secret: 's', prefix: 'x'.repeat(MAX_SECRET_AFFIX_CHARACTERS), suffix: '', mask: false }, undefined],
    [
      { $secret: 's', suffix: 'x'.repeat(MAX_SECRET_AFFIX_CHARACTERS + 1) },
      'suffix: expected at most 65536 characters, got 65537',
    ],
    [{ $secret: 's', prefix: 1 }, 'prefix: expected string'],
    [{ $secret: 's', mask: 'no' }, 'mask: expected boolean'],
    [{ $secret: '..' }, '$secret: expected the name of a secret (1 to 128 letters, digits, "-", "_" and ".")'],
    [
      { $secret: { $param: 'p' } },
      '$secret: expected the name of a secret (1 to 128 letters, digits, "-", "_" and ".")',
    ],
    [{ $secret: 's', prefx: '' }, 'unknown field "prefx" beside "$secret" (did you mean "prefix"?)'],
  ])('%#', (placeholder, fault) => {
    const { faults } = runSync(findPlaceholders([placeholder]))
    expect(faults[0]?.text).toBe(fault)
  })
})

/** Rules as they are written: their normal form, what they cover, and what is no rule. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseIp } from '../../../shared/egress/ip-address.ts'
import {
  coversAddress,
  coversName,
  coversPort,
  MAX_RULE_CHARACTERS,
  NotARule,
  parseAllowRule,
  parseRule,
} from '../../../shared/egress/rule.ts'

describe('the normal form', () => {
  test.each([
    ['*', '*'],
    ['*:443', '*:443'],
    ['pypi.org', 'pypi.org'],
    ['PyPI.org.', 'pypi.org'],
    ['PyPI.org.:443', 'pypi.org:443'],
    ['bücher.example:80', 'xn--bcher-kva.example:80'],
    ['*.GitHubUserContent.com:443', '*.githubusercontent.com:443'],
    ['*.com', '*.com'],
    ['10.0.0.0/8:5432', '10.0.0.0/8:5432'],
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['10.1.2.3', '10.1.2.3'],
    ['10.1.2.3/32:1', '10.1.2.3:1'],
    ['0x7f.1:80', '127.0.0.1:80'],
    ['2130706433', '127.0.0.1'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['[2001:db8::]/32:443', '[2001:db8::]/32:443'],
    ['[2001:DB8:0::0]/32', '[2001:db8::]/32'],
    ['[::1]', '[::1]'],
    ['[::1]:8080', '[::1]:8080'],
    ['[::1]/128', '[::1]'],
    ['[::]/0', '[::]/0'],
    ['[fe80::1%eth0]:80', '[fe80::1]:80'],
    ['[::ffff:10.0.0.0]/104:443', '10.0.0.0/8:443'],
    ['[::ffff:10.0.0.1]', '10.0.0.1'],
    ['localhost:65535', 'localhost:65535'],
  ])('of %s is %s', (text, expected) => {
    expect(parseRule(text).text).toBe(expected)
    expect(parseRule(expected)).toEqual(parseRule(text))
  })
})

describe('no rule', () => {
  test.each([
    ['', 'expected a name, an address or a network'],
    [':443', 'expected a name, an address or a network'],
    ['https://pypi.org/simple', 'expected a host, not a URL'],
    ['pypi.org:', 'expected a port from 1 to 65535'],
    ['pypi.org:0', 'expected a port from 1 to 65535'],
    ['pypi.org:65536', 'expected a port from 1 to 65535'],
    ['pypi.org:https', 'expected a port from 1 to 65535'],
    ['pypi.org:80-90', 'expected a port from 1 to 65535'],
    ['pypi.org:+80', 'expected a port from 1 to 65535'],
    ['pypi.org/simple', 'expected an address before "/"'],
    ['*.10.0.0.1', 'expected a name after "*."'],
    ['*.', 'expected a name, an address or a network'],
    ['**', 'expected "*" only alone'],
    ['*.*.com', 'expected "*" only alone'],
    ['a*.com', 'expected "*" only alone'],
    ['*/8', 'expected "*" only alone'],
    ['10.0.0.0/33', 'expected a prefix length from 0 to 32'],
    ['10.0.0.0/', 'expected a prefix length'],
    ['10.0.0.0/-1', 'expected a prefix length'],
    ['10.0.0.0/8/8', 'expected a prefix length'],
    ['10.0.0.1/8', 'which has no bits after its prefix: 10.0.0.0/8'],
    ['[2001:db8::1]/32', 'which has no bits after its prefix: [2001:db8::]/32'],
    ['[2001:db8::]/129', 'expected a prefix length from 0 to 128'],
    ['[::ffff:10.0.0.0]/8', 'expected a prefix length from 96 to 128'],
    ['2001:db8::/32', 'expected'],
    ['::1', 'expected'],
    ['[::1', 'expected'],
    ['[::1]x', 'expected'],
    ['[pypi.org]', 'expected a name, an address or a network'],
    ['a b', 'expected a name, an address or a network'],
    ['user@pypi.org', 'expected a name, an address or a network'],
    ['a'.repeat(MAX_RULE_CHARACTERS + 1), `expected at most ${MAX_RULE_CHARACTERS} characters`],
  ])('%j: %s', (text, message) => {
    expect(() => parseRule(text)).toThrow(NotARule)
    expect(() => parseRule(text)).toThrow(message)
  })

  test('any text is a rule with a stable normal form, or refused as none', () => {
    const part = fc.oneof(fc.constantFrom('*', '*.', ':', '/', '[', ']', '8', '443', '::', '10.0.0.0'), fc.domain())
    const texts = fc.oneof(
      fc.string(),
      fc.array(part, { maxLength: 6 }).map((parts) => parts.join('')),
    )
    fc.assert(
      fc.property(texts, (text) => {
        try {
          const rule = parseRule(text)
          expect(parseRule(rule.text)).toEqual(rule)
        } catch (error) {
          expect(error).toBeInstanceOf(NotARule)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('covers', () => {
  test.each([
    ['*', 'pypi.org', true],
    ['pypi.org', 'pypi.org', true],
    ['pypi.org', 'a.pypi.org', false],
    ['pypi.org', 'notpypi.org', false],
    ['*.pypi.org', 'a.pypi.org', true],
    ['*.pypi.org', 'b.a.pypi.org', true],
    ['*.pypi.org', 'pypi.org', false],
    ['*.pypi.org', 'notpypi.org', false],
    ['*.pypi.org', 'pypi.org.evil.example', false],
    ['10.0.0.0/8', 'pypi.org', false],
  ])('%s the name %s: %j', (rule, name, expected) => {
    expect(coversName(parseRule(rule), name)).toBe(expected)
  })

  test.each([
    ['*', '10.0.0.1', true],
    ['10.0.0.0/8', '10.255.255.255', true],
    ['10.0.0.0/8', '11.0.0.0', false],
    ['10.0.0.0/8', '::10.0.0.1', false],
    ['10.0.0.0/8', '::ffff:10.0.0.1', true],
    ['0.0.0.0/0', '::1', false],
    ['[::]/0', '10.0.0.1', false],
    ['[2001:db8::]/32', '2001:db8:ffff::1', true],
    ['[2001:db8::]/32', '2001:db9::', false],
    ['[::1]', '::1', true],
    ['pypi.org', '10.0.0.1', false],
  ])('%s the address %s: %j', (rule, address, expected) => {
    expect(coversAddress(parseRule(rule), parseIp(address)!)).toBe(expected)
  })

  test('the port that it names, or all', () => {
    expect([80, 443].map((port) => coversPort(parseRule('pypi.org:443'), port))).toEqual([false, true])
    expect([80, 443].map((port) => coversPort(parseRule('pypi.org'), port))).toEqual([true, true])
  })
})

describe('a rule of an allowlist', () => {
  test.each([
    ['PyPI.org:443', 'pypi.org:443', undefined],
    ['GitHub.com:22 opaque', 'github.com:22 opaque', true],
    ['* opaque', '* opaque', true],
    ['10.0.0.0/8 opaque', '10.0.0.0/8 opaque', true],
  ])('%s is %s', (text, expected, isOpaque) => {
    const rule = parseAllowRule(text)
    expect([rule.text, rule.isOpaque]).toEqual([expected, isOpaque])
    expect(parseAllowRule(expected)).toEqual(rule)
  })

  test.each(['opaque:443 opaque x', ' opaque', 'a  opaque', 'a\topaque', 'a opaque opaque', 'a OPAQUE'])(
    'not: %j',
    (text) => {
      expect(() => parseAllowRule(text)).toThrow(NotARule)
    },
  )

  test('is opaque nowhere else', () => {
    expect(() => parseRule('a opaque')).toThrow(NotARule)
  })
})

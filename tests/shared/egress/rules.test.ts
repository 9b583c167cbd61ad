/** Which connections rules allow: tables, and properties of random rules and targets. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { classOf } from '../../../shared/egress/address-class.ts'
import { parseIp } from '../../../shared/egress/ip-address.ts'
import { NotARule, parseAllowRule, parseReach, parseRule } from '../../../shared/egress/rule.ts'
import {
  decideAddress,
  decideName,
  type Egress,
  intersection,
  MAX_RULES,
  opaquePart,
  PUBLIC_ONLY,
  parseRules,
} from '../../../shared/egress/rules.ts'
import { quickestMs } from '../../support/quickest.ts'

interface Lists {
  readonly allow?: readonly string[] | undefined
  readonly deny?: readonly string[]
}

const egress = ({ allow, deny = [] }: Lists): Egress => ({
  layers: [{ allow: allow && parseRules(allow, 'allow'), deny: parseRules(deny, 'deny') }],
})

/** The decision about `name=address:port` or `address:port`, in a word. */
function verdict(rules: Egress, target: string): string {
  const [, name, address, port] = /^(?:(.+)=)?(.+):(\d+)$/.exec(target)!
  const decision = decideAddress(rules, { name, address: parseIp(address!)!, port: Number(port) })
  if (decision.isAllowed) return `allowed by ${decision.rule}`
  const { reason } = decision
  if (reason.kind === 'class') return `is ${reason.addressClass}`
  return reason.kind === 'unlisted' ? 'unlisted' : `${reason.kind} by ${reason.rule}`
}

describe('a connection', () => {
  const some = {
    allow: ['pypi.org', '*.githubusercontent.com:443', '10.0.0.0/8:5432', 'db.internal:5432', '1.0.0.0/8'],
  }
  test.each<[Lists, string, string]>([
    [some, 'pypi.org=151.101.0.223:443', 'allowed by pypi.org'],
    [some, 'pypi.org=151.101.0.223:80', 'allowed by pypi.org'],
    [some, 'pypi.org=10.0.0.1:443', 'is private'],
    [some, 'pypi.org=10.0.0.1:5432', 'allowed by 10.0.0.0/8:5432'],
    [some, 'pypi.org=127.0.0.1:443', 'is loopback'],
    [some, 'a.githubusercontent.com=185.199.108.133:443', 'allowed by *.githubusercontent.com:443'],
    [some, 'a.githubusercontent.com=185.199.108.133:80', 'unlisted'],
    [some, 'githubusercontent.com=185.199.108.133:443', 'unlisted'],
    [some, 'evil.example=151.101.0.223:443', 'unlisted'],
    [some, 'evil.example=10.0.0.1:5432', 'unlisted'],
    [some, 'evil.example=1.1.1.1:443', 'unlisted'],
    [some, 'db.internal=10.1.2.3:5432', 'allowed by 10.0.0.0/8:5432'],
    [some, 'db.internal=10.1.2.3:5433', 'unlisted'],
    [some, 'db.internal=192.168.0.1:5432', 'is private'],
    [some, '10.1.2.3:5432', 'allowed by 10.0.0.0/8:5432'],
    [some, '10.1.2.3:80', 'is private'],
    [some, '64:ff9b::10.1.2.3:5432', 'is private'],
    [some, '1.1.1.1:53', 'allowed by 1.0.0.0/8'],
    [some, '151.101.0.223:443', 'unlisted'],
    [{ allow: [] }, '1.1.1.1:443', 'unlisted'],
    [{ allow: [] }, 'pypi.org=1.1.1.1:443', 'unlisted'],
    [{ allow: ['*'] }, 'pypi.org=1.1.1.1:443', 'allowed by *'],
    [{ allow: ['*'] }, '1.1.1.1:443', 'allowed by *'],
    [{ allow: ['*:443'] }, '1.1.1.1:80', 'unlisted'],
    [{ allow: ['*'] }, '10.0.0.1:443', 'is private'],
    [{ allow: ['*'] }, 'pypi.org=169.254.169.254:80', 'is metadata'],
    [{ allow: ['*', '169.254.0.0/16'] }, '169.254.1.1:80', 'allowed by 169.254.0.0/16'],
    [{ allow: ['*', '169.254.0.0/16'] }, '169.254.169.254:80', 'is metadata'],
    [{ allow: ['169.254.169.254'] }, '169.254.169.254:80', 'allowed by 169.254.169.254'],
    [{ allow: ['0.0.0.0/0', '[::]/0'] }, '127.0.0.1:80', 'is loopback'],
    [{ allow: ['0.0.0.0/0', '[::]/0'] }, '::1:80', 'is loopback'],
    [{ allow: ['0.0.0.0/0', '[::]/0'] }, '1.1.1.1:80', 'allowed by 0.0.0.0/0'],
    [{ allow: ['8.0.0.0/5'] }, '10.0.0.1:80', 'is private'],
    [{ allow: ['10.0.0.0/8'] }, '10.0.0.1:80', 'allowed by 10.0.0.0/8'],
    [{ allow: ['[64:ff9b::a00:0]/104'] }, '64:ff9b::10.0.0.1:80', 'allowed by [64:ff9b::a00:0]/104'],
    [{ allow: ['[64:ff9b::]/96'] }, '64:ff9b::10.0.0.1:80', 'is private'],
    [{ allow: ['[64:ff9b::]/96'] }, '64:ff9b::8.8.8.8:80', 'allowed by [64:ff9b::]/96'],
    [{ allow: ['[fd00::]/8'] }, 'fd00::1:80', 'allowed by [fd00::]/8'],
    [{ allow: ['[fd00::]/8'] }, 'fd00:ec2::254:80', 'is metadata'],
    [{ allow: undefined }, '10.0.0.1:80', 'allowed by undefined'],
    [{ allow: undefined, deny: ['10.0.0.0/8'] }, '10.0.0.1:80', 'denied by 10.0.0.0/8'],
    [{ allow: undefined, deny: ['10.0.0.0/8'] }, '::ffff:10.0.0.1:80', 'denied by 10.0.0.0/8'],
    [{ allow: undefined, deny: ['10.0.0.0/8'] }, '64:ff9b::10.0.0.1:80', 'denied by 10.0.0.0/8'],
    [{ allow: undefined, deny: ['10.0.0.0/8'] }, '2002:a00:1:::80', 'denied by 10.0.0.0/8'],
    [{ allow: ['*'], deny: ['*.evil.example'] }, 'a.evil.example=1.1.1.1:80', 'denied by *.evil.example'],
    [{ allow: ['*'], deny: ['*:25'] }, 'pypi.org=1.1.1.1:25', 'denied by *:25'],
    [{ allow: ['*'], deny: ['1.1.1.1:443'] }, 'pypi.org=1.1.1.1:443', 'denied by 1.1.1.1:443'],
    [{ allow: ['10.0.0.1'], deny: ['10.0.0.0/8'] }, '10.0.0.1:80', 'denied by 10.0.0.0/8'],
  ])('%j to %s: %s', (lists, target, expected) => {
    expect(verdict(egress(lists), target)).toBe(expected)
  })
})

test('a name is looked up only if a rule allows it', () => {
  const rules = egress({ allow: ['pypi.org:443', '10.0.0.0/8'], deny: ['*:25'] })
  const decide = (name: string, port: number) => decideName(rules, { name, port })
  expect(decide('pypi.org', 443)).toEqual({ isAllowed: true, rule: 'pypi.org:443' })
  expect(decide('pypi.org', 80)).toEqual({ isAllowed: false, reason: { kind: 'unlisted' } })
  expect(decide('secret.evil.example', 443)).toEqual({ isAllowed: false, reason: { kind: 'unlisted' } })
  expect(decide('pypi.org', 25)).toEqual({ isAllowed: false, reason: { kind: 'denied', rule: '*:25' } })
})

describe('lists', () => {
  test('are bounded, and say which rule is none', () => {
    expect(() => parseRules(Array(MAX_RULES + 1).fill('*'), 'allow')).toThrow(
      'allow: expected at most 256 rules, got 257',
    )
    expect(parseRules(Array(MAX_RULES).fill('*'), 'allow')).toHaveLength(MAX_RULES)
    expect(() => parseRules(['*', 'a b'], 'deny')).toThrow(
      new NotARule('deny[1]: expected a name, an address or a network (10.0.0.0/8), got "a b"'),
    )
  })

  test('of the greatest length are checked 1,000 times within a second', () => {
    const label = `${'a'.repeat(61)}.`
    const rules = egress({ allow: Array.from({ length: MAX_RULES }, (_, i) => `*.${label.repeat(3)}${i}.example`) })
    const name = `${label.repeat(3)}zz.example`
    const tookMs = quickestMs(() => {
      for (let i = 0; i < 1_000; i++) decideName(rules, { name, port: 443 })
    })
    expect(tookMs).toBeLessThan(1_000)
  })
})

const names = fc.constantFrom('a.example', 'b.a.example', 'c.example', 'example')
const addresses = fc.constantFrom(
  '1.1.1.1',
  '1.2.3.4',
  '10.0.0.1',
  '127.0.0.1',
  '169.254.169.254',
  '::1',
  'fd00::1',
  '2606:4700::1',
  '64:ff9b::a00:1',
  '0.0.0.0',
)
const ports = fc.constantFrom(80, 443)
const hosts = fc.oneof(
  names,
  names.map((name) => `*.${name}`),
  fc.constantFrom('*', '1.0.0.0/8', '0.0.0.0/0', '10.0.0.0/8', '127.0.0.1', '[::]/0', '[fd00::]/8', '169.254.0.0/16'),
  fc.constantFrom('169.254.169.254', '[64:ff9b::]/96', '[64:ff9b::a00:0]/104', '[::1]', '[2606::]/16'),
)
const rule = fc.tuple(hosts, fc.constantFrom('', '', ':80', ':443')).map((parts) => parts.join(''))
const list = fc.array(rule, { maxLength: 6 })
const anyRules = fc.record({ allow: fc.option(list, { nil: undefined }), deny: list }).map(egress)
const targets = fc
  .record({ name: fc.option(names, { nil: undefined }), address: addresses, port: ports })
  .map(({ address, ...rest }) => ({ ...rest, address: parseIp(address)! }))

describe('properties', () => {
  test('an intersection allows exactly what both allow', () => {
    fc.assert(
      fc.property(anyRules, anyRules, targets, (bounds, rules, target) => {
        const allows = (one: Egress) => decideAddress(one, target).isAllowed
        expect(allows(intersection(bounds, rules))).toBe(allows(bounds) && allows(rules))
      }),
      { numRuns: 2_000 },
    )
  })

  test('one more rule to deny, or one less to allow, never widens', () => {
    fc.assert(
      fc.property(fc.array(rule, { minLength: 1, maxLength: 6 }), list, rule, targets, (allow, deny, more, target) => {
        const before = decideAddress(egress({ allow: allow.slice(1), deny: [...deny, more] }), target)
        if (before.isAllowed) expect(decideAddress(egress({ allow, deny }), target).isAllowed).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('an address that is not public is allowed only by a rule with addresses', () => {
    fc.assert(
      fc.property(list, targets, (allow, target) => {
        const decision = decideAddress(egress({ allow }), target)
        if (!decision.isAllowed || classOf(target.address) === 'public') return
        expect(parseRule(decision.rule!).hosts).toBe('network')
      }),
      { numRuns: 2_000 },
    )
  })

  test('an allowed address has an allowed name', () => {
    fc.assert(
      fc.property(anyRules, targets, (rules, { name, address, port }) => {
        if (name === undefined || !decideAddress(rules, { name, address, port }).isAllowed) return
        expect(decideName(rules, { name, port }).isAllowed).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })

  test('PUBLIC_ONLY allows public addresses, and no others', () => {
    fc.assert(
      fc.property(targets, (target) => {
        expect(decideAddress(PUBLIC_ONLY, target).isAllowed).toBe(classOf(target.address) === 'public')
      }),
    )
  })
})

test('connections that may be opaque are those under opaque rules, in every layer with a list', () => {
  const layer = (allow: readonly string[] | undefined, deny: readonly string[] = []) => ({
    allow: allow?.map(parseAllowRule),
    deny: deny.map(parseRule),
  })
  const isOpaque = (layers: ReturnType<typeof layer>[], name: string) =>
    decideName(opaquePart({ layers }), { name, port: 22 }).isAllowed
  const rules = layer(['a.example:22 opaque', 'b.example', '*.c.example opaque'], ['x.c.example'])
  const names = ['a.example', 'b.example', 'y.c.example', 'x.c.example']
  expect(names.map((name) => isOpaque([rules], name))).toEqual([true, false, true, false])
  expect(names.map((name) => isOpaque([layer(undefined), rules], name))).toEqual([true, false, true, false])
  expect(names.map((name) => isOpaque([layer(['*']), rules], name))).toEqual([false, false, false, false])
  expect(names.map((name) => isOpaque([layer(['*:22 opaque']), rules], name))).toEqual([true, false, true, false])
})

test.each([
  ['10.1.2.3:80', 'allowed by 10.1.2.0/24'],
  ['any.example=10.1.2.3:80', 'allowed by 10.1.2.0/24'],
  ['intranet.example=192.168.7.7:8443', 'allowed by intranet.example:8443'],
  ['a.acme.internal=127.0.0.1:1', 'allowed by *.acme.internal'],
  ['any.example=1.1.1.1:443', 'allowed by *'],
  ['intranet.example=192.168.7.7:80', 'is private'],
  ['other.example=192.168.7.7:8443', 'is private'],
  ['192.168.7.7:8443', 'is private'],
  ['10.1.3.1:80', 'is private'],
  ['169.254.169.254:80', 'is metadata'],
])('what an operator lists beside public addresses: %s %s', (target, expected) => {
  const listed = ['10.1.2.0/24', 'intranet.example:8443', '*.acme.internal', '0.0.0.0/0'].map(parseReach)
  expect(verdict({ layers: [{ allow: [parseRule('*'), ...listed], deny: [] }] }, target)).toBe(expected)
})

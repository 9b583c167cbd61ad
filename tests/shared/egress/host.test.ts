/**
 * Goal: every spelling of a host has one normal form, and no spelling of an address that is not public is judged public.
 * Method: a table of spellings, and generated ones.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { classOf } from '../../../shared/egress/address-class.ts'
import { hostOf, hostText, isLocalName, MAX_HOST_CHARACTERS } from '../../../shared/egress/host.ts'
import { dotted, ipv4Spelling, ipv4Values, ipv6Spelling } from '../../support/address-spellings.ts'

const normal = (text: string) => {
  const host = hostOf(text)
  return host && hostText(host)
}
const judged = (text: string) => {
  const host = hostOf(text)
  return host !== undefined && 'address' in host ? classOf(host.address) : undefined
}

describe('the normal form', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1'],
    ['127.0.0.1.', '127.0.0.1'],
    ['127.1', '127.0.0.1'],
    ['127.0.1', '127.0.0.1'],
    ['2130706433', '127.0.0.1'],
    ['2130706433.', '127.0.0.1'],
    ['0x7f000001', '127.0.0.1'],
    ['0X7F.0x0.0x0.0x1', '127.0.0.1'],
    ['0x7f.1', '127.0.0.1'],
    ['017700000001', '127.0.0.1'],
    ['0177.0.0.01', '127.0.0.1'],
    ['0177.0x0.1', '127.0.0.1'],
    ['00000177.1', '127.0.0.1'],
    ['１２７.０.０.１', '127.0.0.1'],
    ['127。0。0。1', '127.0.0.1'],
    ['①②⑦.⓪.⓪.①', '127.0.0.1'],
    ['127.0.0.1\u00ad', '127.0.0.1'],
    ['0', '0.0.0.0'],
    ['0x', '0.0.0.0'],
    ['0.0', '0.0.0.0'],
    ['4294967295', '255.255.255.255'],
    ['2852039166', '169.254.169.254'],
    ['0xA9FEA9FE', '169.254.169.254'],
    ['0251.0376.0251.0376', '169.254.169.254'],
    ['169.254.43518', '169.254.169.254'],
    ['169.16689662', '169.254.169.254'],
    ['::1', '::1'],
    ['[::1]', '::1'],
    ['0:0:0:0:0:0:0:1', '::1'],
    ['[0000:0000:0000:0000:0000:0000:0000:0001]', '::1'],
    ['::0.0.0.1', '::1'],
    ['::', '::'],
    ['[::ffff:127.0.0.1]', '127.0.0.1'],
    ['::FFFF:7F00:1', '127.0.0.1'],
    ['0:0:0:0:0:ffff:127.0.0.1', '127.0.0.1'],
    ['[::ffff:a9fe:a9fe%25eth0]', '169.254.169.254'],
    ['fe80::1%eth0', 'fe80::1'],
    ['[fe80::1%25eth0]', 'fe80::1'],
    ['FE80:0::0:1%1', 'fe80::1'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['1:0:0:2:0:0:0:3', '1:0:0:2::3'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::2:3:4:5:6:7:8', '0:2:3:4:5:6:7:8'],
    ['64:ff9b::10.0.0.1', '64:ff9b::a00:1'],
    ['EXAMPLE.com', 'example.com'],
    ['example.com.', 'example.com'],
    ['example。com。', 'example.com'],
    ['bücher.example', 'xn--bcher-kva.example'],
    ['BÜCHER.example.', 'xn--bcher-kva.example'],
    ['XN--BCHER-KVA.example', 'xn--bcher-kva.example'],
    ['ＬＯＣＡＬＨＯＳＴ', 'localhost'],
    ['exa\u00admple.com', 'example.com'],
    ['_dmarc.example.com', '_dmarc.example.com'],
    ['1.2.3.example', '1.2.3.example'],
    ['0x7f.example', '0x7f.example'],
    ['metadata', 'metadata'],
  ])('%s is %s', (text, expected) => {
    expect(normal(text)).toBe(expected)
    expect(normal(expected)).toBe(expected)
  })

  test.each([
    ...['', '.', '..', 'a..b', 'a.b..', '.a', '127.0.0.1..', '256.0.0.1', '1.2.3.256', '4294967296', '1.2.3.4.5'],
    ...['1.2.3.08', '09', 'example.0x1g.1', 'example.1', 'example.0x', '1.2.3.a.4', '0x100000000'],
    ...[
      '[',
      ']',
      '[]',
      '[::1',
      '::1]',
      '[[::1]]',
      '[127.0.0.1]',
      '[example.com]',
      ':',
      ':::',
      ':1',
      '1:',
      '1:2',
      '::1::',
    ],
    ...['1:2:3:4:5:6:7:8:9', '1:2:3:4:5:6:7:8::', '::1:2:3:4:5:6:7:8', '12345::', 'g::', '::1.2.3', '::1.2.3.256'],
    ...['1.2.3.4::', '::1.2.3.4:5', '::01.2.3.4', '::1%', '::1%eth0/64', '::1%a b', '::1/128', '::-1', ':: 1', '::１'],
    ...['a b', 'a\tb', 'a\nb', ' a', 'a/b', 'a\\b', 'a?b', 'a#b', 'a@b', 'user:pw@a', 'a:80', '127.0.0.1:80', 'a%2eb'],
    ...['%31', 'a!b', 'a*b', '*', 'a,b', "a'b", 'a;b', 'a&b', 'a|b', 'a<b', 'a\0b', 'xn--', 'xn--a', '\ud800', 'a／b'],
    ...['a：80', 'a＠b', 'a％2eb', `${'a'.repeat(64)}.b`, `${'a.'.repeat(127)}b`, 'a'.repeat(MAX_HOST_CHARACTERS + 1)],
  ])('%j is no host', (text) => {
    expect(normal(text)).toBeUndefined()
  })

  test('names may be as long as DNS allows', () => {
    const name = `${'a'.repeat(63)}.`.repeat(3) + 'b'.repeat(61)
    expect(name).toHaveLength(253)
    expect(normal(`${name}.`)).toBe(name)
  })

  test('is its own normal form, whatever the text', () => {
    const texts = fc.oneof(fc.string({ unit: 'binary' }), fc.domain(), fc.ipV4Extended(), fc.ipV6(), fc.webAuthority())
    fc.assert(
      fc.property(texts, (text) => {
        const once = normal(text)
        if (once !== undefined) expect(normal(once)).toBe(once)
      }),
    )
  })

  test('of a name is what `fetch` connects to', () => {
    fc.assert(
      fc.property(fc.oneof(fc.domain(), fc.ipV4Extended(), ipv4Values.chain(ipv4Spelling)), (text) => {
        const url = URL.parse(`http://${text}/`)
        const found = normal(text)
        if (found !== undefined) expect(url?.hostname.replace(/\.$/, '')).toBe(found)
      }),
    )
  })
})

describe('a spelling of', () => {
  test('an IPv4 address is that address', () => {
    const spelled = ipv4Values.chain((value) => ipv4Spelling(value).map((text) => [value, text] as const))
    fc.assert(
      fc.property(spelled, ([value, text]) => {
        expect(normal(text)).toBe(dotted(value))
        expect(judged(text)).toBe(judged(dotted(value))!)
      }),
      { numRuns: 1_000 },
    )
  })

  test('an IPv6 address is that address', () => {
    const group = fc.oneof(fc.constant(0), fc.constantFrom(0xffff, 0xfe80, 0xfd00, 0x2002, 0x64), fc.nat(0xffff))
    const groups = fc.array(group, { minLength: 8, maxLength: 8 })
    const spelled = groups.chain((all) => fc.tuple(ipv6Spelling(all), ipv6Spelling(all)))
    fc.assert(
      fc.property(spelled, ([one, other]) => {
        expect(normal(one)).toBeDefined()
        expect(normal(one)).toBe(normal(other)!)
        expect(judged(one)).toBe(judged(other)!)
      }),
      { numRuns: 1_000 },
    )
  })

  test('an IPv4 address that is not public, within IPv6, is never public', () => {
    const wrap: ((value: number) => number[])[] = [
      (value) => [0, 0, 0, 0, 0, 0xffff, value >>> 16, value & 0xffff],
      (value) => [0, 0, 0, 0, 0, 0, value >>> 16, value & 0xffff],
      (value) => [0x64, 0xff9b, 0, 0, 0, 0, value >>> 16, value & 0xffff],
      (value) => [0x2002, value >>> 16, value & 0xffff, 0, 0, 0, 0, 1],
    ]
    const spelled = fc
      .tuple(ipv4Values, fc.constantFrom(...wrap))
      .chain(([value, within]) => ipv6Spelling(within(value)).map((text) => [value, text] as const))
    fc.assert(
      fc.property(spelled, ([value, text]) => {
        if (judged(dotted(value)) !== 'public') expect(judged(text)).not.toBe('public')
        expect(judged(text)).toBeDefined()
      }),
      { numRuns: 1_000 },
    )
  })
})

test('names of this machine', () => {
  expect(['localhost', 'a.localhost'].every(isLocalName)).toBe(true)
  expect(['localhost.com', 'notlocalhost', 'localhost.localdomain'].some(isLocalName)).toBe(false)
})

/** Goal: `--runtime-url` in all its forms. Method: tables, and a rule for any text. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { runtimeEntries, runtimeEntry } from '../../../shared/settings/runtime-entry.ts'

describe('--runtime-url', () => {
  test.each([
    ['http://127.0.0.1:18080', { name: 'default', url: 'http://127.0.0.1:18080', labels: {} }],
    ['http://h/base/', { name: 'default', url: 'http://h/base', labels: {} }],
    [
      'gpu-1=http://10.0.0.7:18080,gpu,zone=a',
      { name: 'gpu-1', url: 'http://10.0.0.7:18080', labels: { gpu: '', zone: 'a' } },
    ],
    ['unix:/run/a%20b.sock,gpu', { name: 'default', url: 'unix:/run/a%20b.sock', labels: { gpu: '' } }],
    ['a=https://h,x=y=z,team/name=', { name: 'a', url: 'https://h', labels: { x: 'y=z', 'team/name': '' } }],
  ])('%s', (text, entry) => {
    expect(runtimeEntry(text)).toEqual(entry)
  })

  test.each([
    '',
    '=http://h',
    '.=http://h',
    'a=',
    'a=ftp://h',
    'unix:a.sock',
    'http://h?x',
    'http://h?',
    'http://h#',
    'http://h,',
    'http://h,_x',
    'http://h,__proto__',
    `http://h/${'x'.repeat(3_000)}`,
  ])('%s is none', (text) => {
    expect(typeof runtimeEntry(text)).toBe('string')
  })

  test('several have names of their own, and there are at most so many', () => {
    const urls = (count: number) => Array.from({ length: count }, (_, i) => `r${i}=http://h:${i + 1}`).join(' ')
    expect(runtimeEntries(urls(256))).toHaveLength(256)
    expect(runtimeEntries(urls(257))).toBe('at most 256 runtime services')
    expect(runtimeEntries(' ')).toBe('at least one address')
  })

  test.each([
    'a=http://h:1 b=http://h:1',
    'a=http://h:80/base b=HTTP://H/base/,gpu',
    'a=http://ada:secret@h b=http://h',
    'a=unix:/run/r.sock b=unix:///run/r.sock',
  ])('has no address under two names: %s', (text) => {
    const fault = runtimeEntries(text)
    expect(fault).toStartWith('one name for each address: a and b are both at ')
    expect(fault).not.toContain('secret')
  })

  test('of any text is entries or what is expected', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const entries = runtimeEntries(text)
        if (typeof entries !== 'string') for (const { url } of entries) expect(URL.canParse(url)).toBe(true)
      }),
    )
  })
})

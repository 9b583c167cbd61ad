/** Goal: a secret goes to just the places that an entry of `hosts` names. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { parseSecretHost, secretTargetOf, secretTargetText } from '../../../shared/egress/secret-host.ts'

const covers = (entry: string, url: string) => parseSecretHost(entry)(secretTargetOf(new URL(url))!)

describe('an entry of hosts', () => {
  test.each([
    ['api.example.com', ['https://api.example.com/', 'https://API.example.com.:443/x'], ['http://api.example.com/']],
    ['api.example.com', [], ['https://api.example.com:8443/', 'https://x.api.example.com/', 'https://example.com/']],
    ['api.example.com', [], ['https://api.example.com.evil.net/', 'https://api.example.com@evil.net/']],
    [
      '*.example.org:8443',
      ['https://a.example.org:8443/', 'https://a.b.example.org:8443/'],
      ['https://example.org:8443/'],
    ],
    ['*.example.org:8443', [], ['https://a.example.org/', 'http://a.example.org:8443/', 'https://aexample.org:8443/']],
    ['http://localhost:8080', ['http://localhost:8080/'], ['https://localhost:8080/', 'http://127.0.0.1:8080/']],
    ['http://localhost', ['http://localhost/'], ['http://localhost:8080/']],
    ['10.0.0.0/8', ['https://10.1.2.3/', 'https://0xa.1/'], ['https://11.0.0.1/', 'https://ten.example/']],
    ['[2001:db8::1]:8443', ['https://[2001:db8:0::1]:8443/'], ['https://[2001:db8::2]:8443/']],
  ])('%s', (entry, covered, others) => {
    for (const url of covered) expect([url, covers(entry, url)]).toEqual([url, true])
    for (const url of others) expect([url, covers(entry, url)]).toEqual([url, false])
  })

  test('names an MCP server, and no host of its name', () => {
    expect(parseSecretHost('mcp:search')({ server: 'search' })).toBe(true)
    expect(parseSecretHost('mcp:search')({ server: 'other' })).toBe(false)
    expect(parseSecretHost('search')({ server: 'search' })).toBe(false)
    expect(covers('mcp:search', 'https://search/')).toBe(false)
  })

  test.each(['', 'mcp:', 'https://api.example.com', 'a b', 'host:0', 'a.*.org'])('%p is none', (text) => {
    expect(() => parseSecretHost(text)).toThrow()
  })

  test('that an error tells to add covers the place that was refused, and no other port or scheme', () => {
    const hosts = fc.constantFrom('a.example', 'b.a.example', '10.0.0.1', '[2001:db8::1]', 'localhost')
    const urls = fc.tuple(fc.constantFrom('http', 'https'), hosts, fc.integer({ min: 1, max: 65_535 }))
    fc.assert(
      fc.property(urls, urls, (one, other) => {
        const [target, another] = [one, other].map(([scheme, host, port]) =>
          secretTargetOf(new URL(`${scheme}://${host}:${port}/`)),
        )
        const isCovered = parseSecretHost(secretTargetText(target!))
        expect(isCovered(target!)).toBe(true)
        expect(isCovered(another!)).toBe(secretTargetText(target!) === secretTargetText(another!))
      }),
      {
        examples: [
          [
            ['http', 'localhost', 80],
            ['https', 'localhost', 443],
          ],
        ],
      },
    )
  })
})

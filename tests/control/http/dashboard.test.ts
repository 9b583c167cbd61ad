/** Goal: the page is small, comes whole from this service, and is closed to scripts of others. From source. */
import { expect, test } from 'bun:test'
import { gunzipSync } from 'node:zlib'
import { describedControl } from '../../../scripts/described-apps.ts'

/** Limit for the script, compressed. */
const MAX_SCRIPT_BYTES = 150 * 1024

const app = describedControl()
const get = (path: string, headers: Record<string, string> = {}) =>
  app.handle(new Request(`http://localhost${path}`, { headers: { host: 'localhost', ...headers } }))

const assetsOf = async () =>
  [...(await (await get('/')).text()).matchAll(/"(assets\/[^"]+)"/g)].map(([, path]) => `/${path}`)

test('the page names its script and style sheet, and allows nothing else', async () => {
  const response = await get('/')
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('cache-control')).toBe('no-cache')
  expect(response.headers.get('content-security-policy')).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
      "frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  )
  const html = await response.text()
  expect(html).not.toMatch(/(src|href)="(https?:)?\//) // relative, so that it works below a path
  expect(html).not.toMatch(/<script[^>]*>[^<]/)
})

test('the page has its frame, and nothing in it that its policy refuses', async () => {
  const html = await (await get('/')).text()
  expect(html).toMatch(/<body><noscript>.*<\/noscript><div class="page">.*<main tabindex="-1">/) // its word comes first
  expect(html).toContain('Reading the graphs …')
  expect(html).not.toMatch(/ (style|on\w+)=/)
})

test('the scripts are small, and all files may be kept for ever', async () => {
  const assets = await assetsOf()
  expect(assets.map((path) => path.replace(/[0-9a-f]{16}/, 'HASH'))).toEqual([
    '/assets/early-HASH.js',
    '/assets/dashboard-HASH.css',
    '/assets/dashboard-HASH.js',
  ])
  for (const path of assets) {
    const zipped = await get(path, { 'accept-encoding': 'br, gzip' })
    expect(zipped.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    expect(zipped.headers.get('content-encoding')).toBe('gzip')
    const bytes = await zipped.bytes()
    expect(bytes.length).toBeLessThan(MAX_SCRIPT_BYTES)
    const plain = await get(path)
    expect(plain.headers.get('content-encoding')).toBeNull()
    expect(await plain.text()).toBe(gunzipSync(bytes).toString())
  }
})

test('a file that the caller has is not sent again', async () => {
  const [path] = (await assetsOf()) as [string]
  const { headers } = await get(path)
  const etag = headers.get('etag')!
  expect(etag).toStartWith('W/"') // both encodings have it
  for (const same of [etag, etag.slice('W/'.length), `"a,b", W/"c" ,${etag}`, '*', ' * ']) {
    const response = await get(path, { 'if-none-match': same, 'accept-encoding': 'gzip' })
    expect([same, response.status, await response.text()]).toEqual([same, 304, ''])
    for (const name of ['etag', 'cache-control', 'vary']) expect(response.headers.get(name)).toBe(headers.get(name))
    expect(response.headers.get('content-encoding')).toBeNull()
  }
  for (const other of ['', '"other"', etag.slice('W/"'.length, -1), `"x${etag.slice('W/"'.length)}`, '"*"']) {
    expect([other, (await get(path, { 'if-none-match': other })).status]).toEqual([other, 200])
  }
})

test('a file of another version is not found', async () => {
  const response = await get('/assets/dashboard-0123456789abcdef.js')
  expect(response.status).toBe(404)
  expect(await response.json()).toEqual({ error: 'not found: GET /assets/dashboard-0123456789abcdef.js' })
})

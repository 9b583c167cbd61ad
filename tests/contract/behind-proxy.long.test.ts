/**
 * Goal: the pages of control work behind the proxies that people use, at the root of a host and below a path.
 * Method: Debian's nginx and Caddy with the blocks of docs/operations.md before the built executable; chromium opens the page
 * through them.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { type Control, startControl } from '../support/control.ts'
import { documentedBlocks, PROXY_NAME, startProxy, withoutProxies } from '../support/reverse-proxy.ts'
import { Gate } from './gate.ts'

setDefaultTimeout(180_000)

const reason = withoutChromium ?? withoutProxies

describe.skipIf(reason !== undefined)(`behind a proxy${reason === undefined ? '' : ` (${reason})`}`, () => {
  let browser: TestBrowser
  let control: Control
  beforeAll(async () => {
    ;[browser, control] = await Promise.all([
      TestBrowser.start([PROXY_NAME]),
      startControl({ env: { SERVICE_SHELL_POLICY: 'open' }, flags: ['--allowed-host', PROXY_NAME] }),
    ])
  })
  afterAll(async () => {
    await Promise.all([browser?.[Symbol.asyncDispose](), control?.dispose()])
  })

  test.each([
    ['nginx', 0, ''],
    ['nginx', 1, '/taskmill'],
    ['caddy', 0, ''],
    ['caddy', 1, '/taskmill'],
  ] as const)('the page works with the documented block: %s, number %d, at "%s"', async (kind, number, path) => {
    using gate = new Gate()
    await using proxy = await startProxy(kind, documentedBlocks(kind)[number]!, control.url)
    const url = `http://${PROXY_NAME}:${proxy.port}${path}`
    const viaProxy = (to: string, init: RequestInit = {}) =>
      fetch(`http://127.0.0.1:${proxy.port}${path}${to}`, {
        ...init,
        headers: { ...init.headers, host: `${PROXY_NAME}:${proxy.port}` },
      })
    const page = await browser.open(path === '' ? `${url}/#/submit` : url)
    if (path !== '') await page.goto(`${url}/#/submit`)
    const name = `behind ${kind} at ${path}`
    const tasks = [gate.task('held/and said'), { id: 'then', type: 'noop', depends_on: ['held/and said'] }]
    await page.locator('.submit-form textarea').fill(JSON.stringify({ name, scope: 'graph', tasks }))
    const posted = page.waitForResponse((response) => response.request().method() === 'POST')
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    const answer = await posted
    expect(answer.status()).toBe(202)
    const { graph_id: graphId } = (await answer.json()) as { graph_id: string }
    await page.locator('.box.look-running', { hasText: 'held' }).click()
    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.locator('.tab-log').waitFor()
    gate.open()
    await page.locator('.box.look-success', { hasText: 'then' }).waitFor() // events arrive as they are sent
    expect(await page.locator('.note.fault').count()).toBe(0)
    await page.goto(`${url}/docs`)
    await page.getByRole('searchbox').fill('cancel')
    await page.keyboard.press('Enter')
    await page.getByText('entries have “cancel”').waitFor()
    expect(new URL(page.url()).pathname).toBe(`${path}/docs`)
    const described = page.waitForResponse((response) => response.url() === `${url}/openapi.json`)
    await page.getByRole('link', { name: 'openapi.json' }).click()
    expect((await described).status()).toBe(200)
    // Larger than nginx takes without client_max_body_size.
    const large = [{ id: 'large', type: 'noop', params: { message: 'x'.repeat(3_000_000) } }]
    const body = JSON.stringify({ scope: 'graph', tasks: large })
    expect((await viaProxy('/tasks', { method: 'POST', body })).status).toBe(202)
    const held = await viaProxy(`/graphs/${graphId}/tasks/held%2Fand%20said?wait_ms=1`)
    expect(await held.json()).toMatchObject({ id: 'held/and said', status: 'success' })
    await page.context().close()
    expect(browser.complaints.splice(0)).toEqual([])
  })

  test('behind a plain proxy_pass, which rewrites Host, the page is live, and says why its buttons are refused', async () => {
    await using proxy = await startProxy(
      'nginx',
      'server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } }',
      control.url,
    )
    const page = await browser.open(`http://other.localhost:${proxy.port}`)
    await page.locator('.stream.live').waitFor()
    await control.post({ name: 'seen through it', tasks: [{ id: `plain-${proxy.port}`, type: 'noop' }] })
    await page.locator('.graph-row', { hasText: 'seen through it' }).locator('.look-success').waitFor()
    await page.getByRole('link', { name: 'Submit' }).click()
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    await page.getByText(/origin http:\/\/other.localhost:\d+ is not allowed/).waitFor()
    await page.context().close()
    expect(browser.complaints.splice(0)).toEqual([])
  })

  test.each([
    ['the documented block, below a path', undefined, PROXY_NAME, '/taskmill'],
    [
      'a plain proxy_pass, which rewrites Host',
      'server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } }',
      'other.localhost',
      '',
    ],
  ] as const)('one signs in, submits and signs out behind %s', async (_, block, host, path) => {
    await using guarded = await startControl({
      ...{ env: { SERVICE_TOKEN: 'sesame' }, flags: ['--allowed-host', PROXY_NAME] },
    })
    await using proxy = await startProxy('nginx', block ?? documentedBlocks('nginx')[1]!, guarded.url)
    const page = await browser.open(`http://${host}:${proxy.port}${path}`)
    await page.getByLabel('Token').fill('sesame')
    await page.keyboard.press('Enter')
    await page.locator('.stream.live').waitFor()
    await page.getByRole('link', { name: 'Submit', exact: true }).click()
    await page.locator('.submit-form textarea').fill(JSON.stringify({ name: 'x', tasks: [{ id: 'a', type: 'noop' }] }))
    await page.getByRole('button', { name: 'Submit', exact: true }).click()
    await page.locator('.box.look-success', { hasText: 'a' }).waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByText('Sign in to taskmill').waitFor()
    await page.context().close()
    expect(browser.complaints.splice(0)).toEqual([])
  })

  test('a proxy that holds events back is told of', async () => {
    const held = 'location ~ /events$ { proxy_ignore_headers X-Accel-Buffering; proxy_pass http://127.0.0.1:8080; }'
    await using proxy = await startProxy(
      'nginx',
      `server { listen 80; location / { proxy_pass http://127.0.0.1:8080; } ${held} }`,
      control.url,
    )
    const page = await browser.open(`http://localhost:${proxy.port}`)
    await page.getByRole('alert').filter({ hasText: 'does a proxy hold it back?' }).waitFor()
    await page.context().close()
    expect(browser.complaints.splice(0)).toEqual([])
  })
})

/** Signing in to the page, in a real browser: with a token, with a link, who is signed in, what the token may, signing out. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

const TOKENS = { viewer: { rights: ['read'] }, agent: { rights: ['read', 'submit', 'cancel_own'] } } as const

describe.skipIf(withoutChromium !== undefined)(
  `signing in to the page${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    let browser: TestBrowser
    let tokens: Tokens
    let control: Control
    beforeAll(async () => {
      tokens = tokensFile(TOKENS)
      ;[browser, control] = await Promise.all([
        TestBrowser.start(),
        startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } }),
      ])
    })
    afterAll(async () => {
      await Promise.all([browser?.[Symbol.asyncDispose](), control?.dispose()])
      tokens?.[Symbol.dispose]()
    })

    /** A graph that waits for an approval. */
    const submitted = async (name: string): Promise<string> => {
      const body = JSON.stringify({ scope: 'graph', name: `of ${name}`, tasks: [{ id: 'a', type: 'approval' }] })
      const answer = await control.fetch('/tasks', { method: 'POST', headers: tokens.as(name), body })
      return ((await answer.json()) as { graph_id: string }).graph_id
    }

    test('the page asks once, other tabs need no token, no script sees it, and it is gone after signing out', async () => {
      const page = await browser.open(control.url)
      await page.getByText('Sign in to taskmill').waitFor()
      expect(await page.evaluate(`document.activeElement.id`)).toBe('token')
      await page.getByLabel('Token').fill('wrong')
      await page.keyboard.press('Enter')
      await page.getByText('Not signed in: the token is wrong, revoked or expired.').waitFor()
      await page.getByLabel('Token').fill('token-of-agent')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('No graphs yet').waitFor()
      await page.locator('.stream.live').waitFor()
      await page.locator('.signed-in', { hasText: 'agent' }).waitFor()
      expect(await page.evaluate(`document.cookie + JSON.stringify({ ...sessionStorage, ...localStorage })`)).toBe('{}')
      const cookies = await page.context().cookies()
      expect(cookies).toMatchObject([{ httpOnly: true, sameSite: 'Strict', secure: false, path: '/' }])

      const other = await page.context().newPage()
      await other.goto(control.url)
      await other.locator('.signed-in', { hasText: 'agent' }).waitFor()
      await page.getByRole('button', { name: 'Sign out' }).click()
      await page.getByText('Sign in to taskmill').waitFor()
      await other.getByText('Sign in to taskmill').waitFor() // its stream has ended
      expect(await page.context().cookies()).toEqual([])
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })

    test('a link signs in once, and is not in the address any more', async () => {
      const { envelope } = await runClient(['open', '--print'], {
        url: control.url,
        env: { SERVICE_TOKEN: 'token-of-viewer' },
      })
      const url = String(envelope.data!.url)
      const page = await browser.open(url)
      await page.locator('.signed-in', { hasText: 'viewer' }).waitFor()
      expect(await page.evaluate('location.hash')).toBe('#/graphs')
      await page.context().close()
      const late = await browser.open(url)
      await late.getByText('Not signed in: the link was used').waitFor()
      await late.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })

    test.each(['light', 'dark'] as const)(
      'what a token may not is disabled, with the reason, %s',
      async (colorScheme) => {
        const [own, other] = [await submitted('agent'), await submitted('agent')]
        const page = await browser.open(control.url, { colorScheme, reducedMotion: 'reduce' })
        await page.getByLabel('Token').fill('token-of-viewer')
        await page.keyboard.press('Enter')
        await page.locator('.signed-in', { hasText: 'viewer' }).waitFor()
        expect(await page.getByRole('link', { name: 'Submit', exact: true }).count()).toBe(0)
        await page.goto(`${control.url}/#/graphs/${own}?task=a`)
        const cancel = page.locator('.graph-head').getByRole('button', { name: 'Cancel' })
        await cancel.waitFor()
        expect([await cancel.isDisabled(), await cancel.getAttribute('title')]).toEqual([
          ...[true, 'The token viewer lacks the right cancel.'],
        ])
        const approve = page.getByRole('button', { name: 'Approve …' })
        await approve.waitFor()
        expect([await approve.isDisabled(), await approve.getAttribute('title')]).toEqual([
          ...[true, 'The token viewer lacks the right answer.'],
        ])
        const axe = await Bun.file(axePath).text()
        expect(
          await page.evaluate(`${axe}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`),
        ).toEqual([])
        await page.getByRole('button', { name: 'Sign out' }).click()
        await page.getByLabel('Token').fill('token-of-agent')
        await page.keyboard.press('Enter')
        await page.locator('.graph-head').getByRole('button', { name: 'Cancel' }).click()
        await page.getByRole('button', { name: 'Cancel the graph' }).click()
        await page.locator('.graph-state', { hasText: /cancelled/i }).waitFor()
        await control.fetch(`/graphs/${other}/cancel`, { method: 'POST', headers: { authorization: 'Bearer sesame' } })
        await page.context().close()
        expect(browser.complaints.splice(0)).toEqual([])
      },
    )
  },
)

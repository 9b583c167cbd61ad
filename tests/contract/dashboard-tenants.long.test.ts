/** The page of a tenant, and what an operator sees of tenants, in a real browser. Source: docs/security.md, Tenants. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { type Control, startControl } from '../support/control.ts'
import { type Tokens, tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

const ALL = ['read', 'submit', 'cancel', 'answer', 'operate'] as const
const TOKENS = {
  ops: { rights: ALL },
  wile: { rights: ALL, tenant: 'acme' },
  hank: { rights: [...ALL, 'host'], tenant: 'globex' },
} as const
type Name = keyof typeof TOKENS

/** What belongs to the whole service. */
const OF_SERVICE = /^\/(runtimes?|schedules|schedule-files|pause|resume|audit)\b/

describe.skipIf(withoutChromium !== undefined)(
  `the page of a tenant${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    let browser: TestBrowser
    let tokens: Tokens
    let control: Control
    const graphs = {} as Record<Name, string>
    beforeAll(async () => {
      tokens = tokensFile(TOKENS)
      ;[browser, control] = await Promise.all([
        TestBrowser.start(),
        startControl({ flags: ['--tokens-file', tokens.path] }),
      ])
      for (const name of Object.keys(TOKENS) as Name[]) graphs[name] = await submitted(name)
    })
    afterAll(async () => {
      await Promise.all([browser?.[Symbol.asyncDispose](), control?.dispose()])
      tokens?.[Symbol.dispose]()
    })

    /** A graph that waits for an approval. All have one name. */
    const submitted = async (name: Name): Promise<string> => {
      const labels = { schedule: `of-${name}` }
      const body = JSON.stringify({ scope: 'graph', name: 'nightly', labels, tasks: [{ id: 'a', type: 'approval' }] })
      const answer = await control.fetch('/tasks', { method: 'POST', headers: tokens.as(name), body })
      return ((await answer.json()) as { graph_id: string }).graph_id
    }

    /** A page that this caller has signed in to, and the answers that it got since. */
    const signedIn = async (name: Name, options = {}) => {
      const page = await browser.open(control.url, options)
      await page.getByLabel('Token').fill(`token-of-${name}`)
      const answers: (readonly [path: string, status: number])[] = []
      page.on('response', (answer) => answers.push([new URL(answer.url()).pathname, answer.status()]))
      await page.keyboard.press('Enter')
      await page.locator('.signed-in', { hasText: name }).waitFor()
      await page.locator('.stream.live').waitFor()
      return { page, answers }
    }
    const violations = async (page: Page) =>
      page.evaluate(
        `${await Bun.file(axePath).text()}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`,
      )
    const closed = async (page: Page) => {
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    }

    test.each(['light', 'dark'] as const)(
      'says whose it is, and asks for nothing of the service, %s',
      async (colorScheme) => {
        const { page, answers } = await signedIn('wile', { colorScheme, reducedMotion: 'reduce' })
        expect(await page.locator('.whose').textContent()).toBe('tenant acme')
        expect(await page.locator('.graph-row').count()).toBe(1)
        expect(await page.getByRole('link', { name: 'Schedules' }).count()).toBe(0)
        expect(await page.getByText('tenant globex').count()).toBe(0)
        await page.locator('.run-name').waitFor()
        expect(await violations(page)).toEqual([])

        await page.getByRole('link', { name: 'Service' }).click()
        await page.getByRole('heading', { name: 'Tasks of acme' }).waitFor()
        await page.locator('.tile', { hasText: '1kept' }).waitFor()
        expect(await page.getByText('of the tenant acme').count()).toBe(1)
        expect(await page.getByRole('button', { name: 'Pause …' }).count()).toBe(0)
        expect(await violations(page)).toEqual([])

        await page.goto(`${control.url}/#/schedules`)
        await page.getByText('Schedules belong to the whole service.').waitFor()

        await page.goto(`${control.url}/#/graphs/${graphs.wile}?task=a`)
        await page.locator('.graph-state .label', { hasText: 'schedule=of-wile' }).waitFor()
        expect(await page.locator('a.label').count()).toBe(0) // it leads to no schedule
        await page.getByRole('button', { name: 'Approve …' }).waitFor()
        expect(await violations(page)).toEqual([])

        await page.goto(`${control.url}/#/graphs/${graphs.hank}`)
        await page.getByText(`There is no graph ${graphs.hank}.`).waitFor()
        expect(answers.filter(([path, status]) => OF_SERVICE.test(path) || status === 403)).toEqual([])
        await closed(page)
      },
    )

    test('offers examples that its tasks may be', async () => {
      for (const [name, expected] of [
        ['wile', '"capability_mode": "strict"'],
        ['hank', '"type": "shell"'],
      ] as const) {
        const { page } = await signedIn(name)
        await page.getByRole('link', { name: 'Submit', exact: true }).click()
        expect(await page.getByLabel('Graph, as JSON').inputValue()).toContain(expected)
        await closed(page)
      }
    })

    test('of an operator names the tenants, and keeps their runs of one name apart', async () => {
      const { page } = await signedIn('ops', { reducedMotion: 'reduce' })
      expect(await page.locator('.whose').count()).toBe(0)
      await page.locator('.capacity-line').waitFor()
      const rows = page.locator('.graph-row')
      expect(await rows.count()).toBe(3)
      expect(await rows.locator('.label', { hasText: 'tenant' }).allTextContents()).toEqual([
        'tenant globex',
        'tenant acme',
      ])
      expect(await page.locator('.run-name').allTextContents()).toEqual([
        'nightly tenant globex',
        'nightly tenant acme',
        'nightly ',
      ])
      expect(await violations(page)).toEqual([])
      await page.getByLabel('Filter graphs').fill('acme')
      await until(
        () => rows.count(),
        (count) => count === 1,
      )
      await rows.first().click()
      await page.locator('.graph-state .label', { hasText: 'tenant acme' }).waitFor()
      expect(page.url()).toContain(graphs.wile)
      await page.getByRole('link', { name: 'Runs' }).click()
      await page.getByRole('heading', { name: 'nightly' }).waitFor()
      await page.locator('.runs-page .label', { hasText: 'tenant acme' }).waitFor()
      await page.locator('.runs thead th').nth(1).waitFor()
      expect(await page.locator('.runs thead th').count()).toBe(2) // the tasks, and its run
      expect(await violations(page)).toEqual([])
      const other = await submitted('hank') // an event tells of it
      await page.getByRole('link', { name: 'Graphs', exact: true }).click()
      await page.getByLabel('Filter graphs').fill('globex')
      await page.locator(`.graph-row[href*="${other}"]`).waitFor()
      await closed(page)
    })
  },
)

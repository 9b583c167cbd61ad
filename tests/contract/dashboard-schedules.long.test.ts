/** What people do with schedules in the page: look, add, change, pause, run, delete, in a real browser. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import type { Schedule } from '../../shared/contract/schedules.ts'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { type Control, startControl } from '../support/control.ts'
import { place, YEARLY, yaml } from '../support/schedule-files.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

describe.skipIf(withoutChromium !== undefined)(
  `schedules in the page${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    let browser: TestBrowser
    let control: Control
    beforeAll(async () => {
      ;[browser, control] = await Promise.all([TestBrowser.start(), startControl()])
    })
    afterAll(async () => {
      await Promise.all([browser?.[Symbol.asyncDispose](), control?.dispose()])
    })

    const violations = async (page: Page): Promise<string[]> =>
      (await page.evaluate(
        `${await Bun.file(axePath).text()}; axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) =>
          id + ': ' + nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary).join(' | ')))`,
      )) as string[]
    const closed = async (page: Page) => {
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    }
    const put = (name: string, body: object) =>
      control.fetch(`/schedules/${name}`, { method: 'PUT', body: JSON.stringify(body) })
    const schedule = async (name: string) => (await (await control.fetch(`/schedules/${name}`)).json()) as Schedule
    const fails = { tasks: [{ id: 'a', type: 'file', params: { action: 'read', path: 'missing' } }] }

    test('one of a file says so and is not changed here, and a faulty file is told', async () => {
      using here = place()
      here.write('good.yaml', yaml(`{${YEARLY}}`))
      here.write('bad.yaml', yaml('{cron: "99 0 1 1 *"}'))
      await using own = await here.start()
      const page = await browser.open(`${own.url}/#/schedules`)
      await page.getByText('from the file good.yaml').waitFor()
      await page.getByText('The file bad.yaml cannot be used: ').waitFor()
      await page.getByRole('button', { name: 'Run now' }).waitFor()
      expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0)
      expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0)
      expect(await violations(page)).toEqual([])
      await closed(page)
    })

    test('one is added, with its rule checked while one types, and changed', async () => {
      const page = await browser.open(`${control.url}/#/graphs`, { timezoneId: 'America/New_York' })
      await page.getByRole('link', { name: 'Schedules' }).click()
      await page.getByText('There are none yet').waitFor()
      await page.getByRole('link', { name: 'Add a schedule' }).click()
      const due = page.locator('.due li')
      await until(() => due.count(), 5)
      await page.getByLabel('Expression').fill('0 25 * * *')
      const fault = page.locator('#about-when', { hasText: 'cron: Invalid value for hour' })
      await fault.waitFor()
      expect(await violations(page)).toEqual([])
      await page.getByLabel('Expression').fill('0 12 * * *')
      await fault.waitFor({ state: 'detached' })
      await page.getByLabel('Time zone').fill('Asia/Tokyo')
      await due.first().getByText('12:00:00 Asia/Tokyo').waitFor()
      expect(await due.first().locator('time').textContent()).toMatch(/ (22|23):00:00$/) // in New York
      await page.getByLabel('Name').fill('-wrong')
      await page.locator('#about-name', { hasText: 'expected 1 to 128' }).waitFor()
      await page.getByLabel('Name').fill('noon')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.locator('.schedule .rule', { hasText: 'cron 0 12 * * * in Asia/Tokyo' }).waitFor()
      expect(await schedule('noon')).toMatchObject({ cron: '0 12 * * *', timezone: 'Asia/Tokyo', paused: false })
      expect(await violations(page)).toEqual([])
      await page.getByRole('link', { name: 'Edit' }).click()
      await page.getByLabel('Rule').selectOption('every')
      await page.getByLabel('Seconds').fill('90')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.locator('.schedule .rule', { hasText: 'every 1 m 30 s' }).waitFor()
      await page.goto(`${control.url}/#/schedules?edit`)
      await page.getByLabel('Name').fill('noon')
      await page.getByRole('button', { name: 'Save' }).click()
      await page.locator('#about-name', { hasText: 'There is a schedule of this name' }).waitFor()
      expect(await schedule('noon')).toMatchObject({ every: 90_000 })
      await closed(page)
    })

    test('its outcomes lead to the graphs, these lead back, and what it does is changed at a click', async () => {
      await put('hourly', { every: 3_600_000, graph: fails })
      const page = await browser.open(`${control.url}/#/schedules/hourly`)
      await page.getByText('Last').waitFor()
      await page.getByRole('button', { name: 'Run now' }).click()
      await page.locator('.failure-card, .note').first().waitFor()
      await page.getByRole('link', { name: 'schedule=hourly', exact: true }).click()
      const outcome = page.locator('.outcomes .look-failed')
      await outcome.waitFor()
      await page
        .getByText(/^failed, /)
        .first()
        .waitFor()
      expect(await violations(page)).toEqual([])
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByText('nothing while it is paused').waitFor()
      expect((await schedule('hourly')).paused).toBe(true)
      await page.getByRole('button', { name: 'Resume' }).click()
      await until(() => page.locator('.next-times li').count(), 5)
      await outcome.click()
      await page.getByRole('heading', { name: 'hourly' }).waitFor()
      await page.goBack()
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('button', { name: 'Keep it' }).click()
      expect((await control.fetch('/schedules/hourly')).status).toBe(200)
      await page.getByRole('button', { name: 'Delete' }).click()
      await page.getByRole('button', { name: 'Delete it' }).click()
      await page.locator('.schedule', { hasText: 'hourly' }).waitFor({ state: 'detached' })
      expect((await control.fetch('/schedules/hourly')).status).toBe(404)
      await closed(page)
    })

    test('thirty outcomes are shown, and due times that were skipped are told', async () => {
      await put('often', { every: 1_000, graph: { tasks: [{ id: 'a', type: 'noop' }] } })
      for (let i = 0; i < 32; i++) await control.fetch('/schedules/often/trigger', { method: 'POST' })
      await put('held', { every: 1_000, graph: { tasks: [{ id: 'a', type: 'approval', params: {} }] } })
      const page = await browser.open(`${control.url}/#/schedules`)
      await until(() => page.locator('.schedule', { hasText: 'often' }).locator('.outcomes li').count(), 30)
      await page.locator('.schedule', { hasText: 'held' }).locator('.trouble', { hasText: 'skipped' }).waitFor()
      await page.getByLabel('Find a schedule').fill('hel')
      await until(() => page.locator('.schedule').count(), 1)
      await closed(page)
    })
  },
)

/** Pauses in the page: the button of a graph, and the notes for a graph and for the service, in a real browser. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { startControl } from '../support/control.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

describe.skipIf(withoutChromium !== undefined)(
  `pauses in the page${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    test('a graph is paused and resumed, and a pause of the service is told', async () => {
      await using browser = await TestBrowser.start()
      await using control = await startControl()
      const { graph_id } = await control.submit([{ id: 'a', type: 'approval', params: {} }])
      const page = await browser.open(`${control.url}/#/graphs/${graph_id}`)
      await page.getByRole('button', { name: 'Pause' }).click()
      await page.getByText('This graph was paused').waitFor()
      const axe = await Bun.file(axePath).text()
      expect(await page.evaluate(`${axe}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`)).toEqual(
        [],
      )
      await page.getByRole('button', { name: 'Resume' }).click()
      await page.getByRole('button', { name: 'Pause' }).waitFor()
      await control.fetch('/pause', { method: 'POST', body: '{"why": "the rack"}' })
      await page.getByText('nothing new starts (the rack)').waitFor()
      await page.getByRole('button', { name: 'Resume the service' }).click()
      await page.getByText('nothing new starts').first().waitFor({ state: 'detached' })
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })

    test('a type of tasks and the service are paused with a reason, and resumed', async () => {
      await using browser = await TestBrowser.start()
      await using control = await startControl()
      const page = await browser.open(`${control.url}/#/service`)
      const paused = async () => (await (await control.fetch('/pauses')).json()) as object[]
      const pause = async (type: string, why: string) => {
        await page.getByRole('button', { name: 'Pause …' }).click()
        await page.getByLabel('Tasks of this type').fill(type)
        await page.getByLabel('Why').fill(why)
        await page.getByRole('button', { name: 'Pause it' }).click()
      }
      await pause('shall', 'x')
      await page.getByRole('alert').filter({ hasText: 'shall' }).waitFor()
      const axe = await Bun.file(axePath).text()
      const violations = () =>
        page.evaluate(`${axe}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`)
      expect(await violations()).toEqual([])
      await page.getByRole('button', { name: 'Not now' }).click()
      await pause('shell', 'a new image')
      await page.getByText(/Tasks of type .*shell were paused .*: nothing new starts \(a new image\)/).waitFor()
      await pause('', 'the rack')
      await page.getByText(/The service was paused .*\(the rack\)/).waitFor()
      expect(await paused()).toMatchObject([{ why: 'a new image' }, { why: 'the rack' }])
      expect(await violations()).toEqual([])
      await page.getByRole('button', { name: 'Resume the service' }).click()
      await page.getByRole('button', { name: /Resume .*shell/ }).click()
      await page.getByText('nothing new starts').first().waitFor({ state: 'detached' })
      expect(await paused()).toEqual([])
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })
  },
)

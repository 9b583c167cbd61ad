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
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })
  },
)

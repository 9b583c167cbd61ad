/** Changes of a live graph in the page, in a real browser: an open graph and the list show the new tasks, and who changed it. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { startControl } from '../support/control.ts'
import { tokensFile } from '../support/tokens.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

describe.skipIf(withoutChromium !== undefined)(
  `changes of live graphs in the page${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    test('an open graph shows its new tasks, and who changed it', async () => {
      using tokens = tokensFile({ ada: { rights: ['submit', 'cancel'] } })
      await using browser = await TestBrowser.start()
      await using control = await startControl({
        flags: ['--tokens-file', tokens.path],
        env: { SERVICE_TOKEN: 'sesame' },
      })
      const own = { authorization: 'Bearer sesame' }
      const tasks = [
        { id: 'gate', type: 'wait', params: { signal: true } },
        { id: 'gone', type: 'noop', depends_on: ['gate'] },
      ]
      const { graph_id } = await control.submit(tasks, own)
      const patch = async (body: object, headers = own) => {
        const sent = { method: 'PATCH', headers, body: JSON.stringify(body) }
        expect((await control.fetch(`/graphs/${graph_id}`, sent)).status).toBe(200)
      }
      const page = await browser.open(`${control.url}/#/graphs/${graph_id}`)
      await page.getByLabel('Token').fill('sesame')
      await page.getByRole('button', { name: 'Sign in' }).click()
      const box = (id: string) => page.locator('.box', { hasText: id })
      const line = page.locator('.graph-state')
      await box('gone').waitFor()
      expect(await line.getByText('changed').count()).toBe(0)
      await patch({ add: [{ id: 'fresh', type: 'noop', depends_on: ['gate'] }], remove: ['gone'] }, tokens.as('ada'))
      await line.getByText('changed once, by ada').waitFor()
      await box('fresh').waitFor()
      await box('gone').waitFor({ state: 'detached' })
      const axe = await Bun.file(axePath).text()
      expect(await page.evaluate(`${axe}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`)).toEqual(
        [],
      )
      await patch({ add: [{ id: 'more', type: 'noop' }] })
      await line.getByText('changed 2 times, by ada').waitFor()
      await line.getByText('1 of 3 done').waitFor()
      await page.goto(`${control.url}/#/`)
      await page.getByText('1 of 3 tasks').first().waitFor()
      await patch({ add: [{ id: 'last', type: 'noop' }] })
      await page.getByText('2 of 4 tasks').first().waitFor()
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })
  },
)

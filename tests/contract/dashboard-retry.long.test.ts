/** Retries in the page: the buttons of a failed task and of a failed graph, and a refusal, in a real browser. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

describe.skipIf(withoutChromium !== undefined)(
  `retries in the page${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    test('a task and a graph are retried, and an open page shows it', async () => {
      await using dir = await tempDir()
      await using browser = await TestBrowser.start()
      await using control = await startControl()
      const file = join(dir.path, 'there')
      const { graph_id } = await control.submit([
        { id: 'a', type: 'os', tool_name: 'shell', params: { command: 'cat', args: [file] } },
        { id: 'b', type: 'os', tool_name: 'noop', depends_on: ['a'] },
      ])
      const page = await browser.open(`${control.url}/#/graphs/${graph_id}?task=a`)
      const state = page.locator('.graph-state')
      await state.getByText('1 failed, 1 skipped').waitFor()
      const axe = await Bun.file(axePath).text()
      expect(await page.evaluate(`${axe}; axe.run().then(({ violations }) => violations.map(({ id }) => id))`)).toEqual(
        [],
      )
      await page.locator('.task-panel').getByRole('button', { name: 'Retry' }).click()
      await page.locator('.task-panel').getByText('Attempts2').waitFor()
      await state.getByText('1 failed, 1 skipped').waitFor()
      await Bun.write(file, 'x')
      await page.locator('.graph-head').getByRole('button', { name: 'Retry' }).click()
      await state.getByText('2 of 2 done').waitFor()
      await state.getByText('succeeded').waitFor()
      await page.locator('.failure-card').waitFor({ state: 'detached' })
      expect(await page.getByRole('button', { name: 'Retry' }).count()).toBe(0)
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    })

    test('a refusal is shown', async () => {
      await using browser = await TestBrowser.start()
      await using control = await startControl()
      const { graph_id } = await control.submit([
        { id: 'c', type: 'os', tool_name: 'shell', params: { command: 'false' } },
      ])
      const page = await browser.open(`${control.url}/#/graphs/${graph_id}?task=c`)
      const button = page.locator('.task-panel').getByRole('button', { name: 'Retry' })
      await button.waitFor()
      const other = { id: 'c', type: 'os', tool_name: 'noop' }
      await control.submit([other])
      await button.click()
      await page.getByText('another graph has taken the id of task c since').waitFor()
      await page.context().close()
    })
  },
)

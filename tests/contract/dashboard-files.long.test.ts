/** The page of a task lists, shows and saves its files, in a real browser, against the built services. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { startPair } from '../support/pair.ts'

setDefaultTimeout(120_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** It would run, if it were not shown as text. */
const HOSTILE = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(1)</script></svg>'
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe.skipIf(withoutChromium !== undefined)(
  `the files of a task${withoutChromium === undefined ? '' : ` (skipped: ${withoutChromium})`}`,
  () => {
    test('are listed by directory, shown as text, JSON or image, and saved', async () => {
      await using pair = await startPair()
      await using browser = await TestBrowser.start()
      const script = `mkdir -p d/e; echo '{"key": [1]}' > d/a.json; echo ${PNG} | base64 -d > d/b.png
        for name in c.html c.svg '<b>'; do echo '${HOSTILE}' > "d/$name"; done; ln -s / d/root`
      const { graph_id } = await pair.control.submit([
        { id: 'made', type: 'runtime.script', params: { script } },
        { id: 'none', type: 'noop' },
      ])
      await pair.control.allEnded()
      const at = (id: string) => `${pair.control.url}/#/graphs/${graph_id}?task=${id}&tab=files`
      const page = await browser.open(at('made'))
      const panel = page.locator('.task-panel')
      const button = (name: string) => panel.getByRole('button', { name, exact: true })
      const preview = (name: string) => panel.getByRole('region', { name: `Preview of d/${name}` })
      await button('d/').click()
      await panel.getByText('root').waitFor()
      expect(await button('root').count()).toBe(0)
      await button('a.json').click()
      await preview('a.json').getByText('key').waitFor()
      await button('b.png').click()
      await preview('b.png').locator('img').waitFor()
      expect(
        await preview('b.png')
          .locator('img')
          .evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth),
      ).toBe(1)
      for (const name of ['c.html', 'c.svg', '<b>']) {
        await button(name).click()
        await preview(name).getByText(HOSTILE).waitFor()
        expect(await panel.locator('.file-preview svg, .file-preview script, .file-preview img, li b').count()).toBe(0)
      }
      const found = await page.evaluate(
        `${await Bun.file(axePath).text()}; axe.run('.task-panel', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id }) => id))`,
      )
      expect(found).toEqual([])
      const [download] = await Promise.all([page.waitForEvent('download'), button('Download c.html').click()])
      expect(download.suggestedFilename()).toBe('c.html')
      expect(readFileSync(await download.path(), 'utf8')).toBe(`${HOSTILE}\n`)
      await page.goto(at('none'))
      await panel.getByRole('heading', { name: 'none' }).waitFor()
      expect(await panel.getByRole('link', { name: 'Files' }).count()).toBe(0)
      expect(browser.complaints).toEqual([])
    })
  },
)

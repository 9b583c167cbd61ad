/** The page of a task lists the connections of its network, in a real browser, against the built services. */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import type { TaskNetwork } from '../../shared/contract/task-network.ts'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { answering, TestServer } from '../support/egress.ts'
import { startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { missingSandbox } from '../support/sandboxes.ts'

setDefaultTimeout(120_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const missing = withoutChromium ?? missingSandbox

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
const curl = (url: string) => `curl --silent --noproxy '' '${url}'`
/** It would be markup, if it were not shown as text. */
const HOSTILE = '<img src=x onerror=alert(1)>'

describe.skipIf(missing !== undefined)(
  `the network of a task${missing === undefined ? '' : ` (skipped: ${missing})`}`,
  () => {
    test('is listed while it runs, is text whatever a task asks for, and is empty for a task without rules', async () => {
      await using server = await TestServer.start(answering(OK))
      await using pair = await startPair()
      await using browser = await TestBrowser.start()
      const sandbox = { profile: 'linux_sandbox', network: { allow: ['127.0.0.1'] } }
      const script = `${curl(`http://127.0.0.1:${server.port}/`)}; ${curl('http://10.0.0.1/')}; ${waitFor('go')}`
      const { graph_id } = await pair.control.submit([
        { id: 'ruled', type: 'runtime.script', params: { script, sandbox } },
        { id: 'plain', type: 'runtime.script', params: { script: 'true' } },
        { id: 'none', type: 'noop' },
      ])
      const at = (id: string) => `${pair.control.url}/#/graphs/${graph_id}?task=${id}&tab=network`
      const page = await browser.open(at('ruled'))
      const panel = page.locator('.task-panel')
      const rows = panel.getByRole('list', { name: 'Connections' }).getByRole('listitem')
      await rows.nth(1).waitFor()
      const texts = await rows.allInnerTexts()
      expect(texts[0]).toMatch(/^allowed 127\.0\.0\.1:\d+ /)
      expect(texts[0]).toContain('rule 127.0.0.1 · ')
      expect(texts[0]).toContain(' 36 B received')
      expect(texts[1]).toMatch(/^refused 10\.0\.0\.1:80 .*its address is private/s)
      expect(await panel.locator('.connection-totals').textContent()).toMatch(
        /^1 allowed, 1 refused, \d+ B sent, 36 B received$/,
      )
      const found = await page.evaluate(
        `${await Bun.file(axePath).text()}; axe.run('.task-panel', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id }) => id))`,
      )
      expect(found).toEqual([])
      const network = (await (
        await pair.control.fetch(`/graphs/${graph_id}/tasks/ruled/network`)
      ).json()) as TaskNetwork
      const hostile = { host: HOSTILE, rule: HOSTILE, message: HOSTILE, at: HOSTILE, reason: HOSTILE }
      await page.route('**/network', (route) =>
        route.fulfill({
          json: { ...network, connections: network.connections.map((one) => ({ ...one, ...hostile })) },
        }),
      )
      await rows.getByText(`${HOSTILE}:80`).waitFor()
      expect(await panel.locator('img').count()).toBe(0)
      await page.unroute('**/network')
      await page.goto(at('plain'))
      await panel.getByText('no connections through rules').waitFor()
      await page.goto(at('none'))
      await panel.getByRole('heading', { name: 'none' }).waitFor()
      expect(await panel.getByRole('link', { name: 'Network' }).count()).toBe(0)
      expect(browser.complaints).toEqual([])
    })
  },
)

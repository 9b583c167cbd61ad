/**
 * The dashboard of a replica of control, in a real browser: it shows the graphs of all replicas as they move, and lists
 * the replicas.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { mustPostgres } from '../support/must-postgres.ts'
import { startPostgres } from '../support/postgres.ts'
import { answered, cluster, healthOf } from '../support/replicas.ts'
import { Gate } from './gate.ts'

setDefaultTimeout(120_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')
const missing = withoutChromium ?? mustPostgres()

describe.skipIf(missing !== undefined)(
  `the dashboard of a replica${missing === undefined ? '' : ` (${missing})`}`,
  () => {
    test('follows the graphs of all replicas, and lists who is there', async () => {
      await using postgres = await startPostgres()
      using each = await cluster([postgres])
      using gate = new Gate()
      const open = { SERVICE_SHELL_POLICY: 'open' }
      const controls = await Promise.all([each.replica(), each.replica([], open), each.replica([], open)])
      const [first, second, third] = controls as [(typeof controls)[0], (typeof controls)[0], (typeof controls)[0]]
      await using _ = first
      await using __ = second
      await using ___ = third
      await using browser = await TestBrowser.start()
      await first.post({ name: 'early', tasks: [{ id: 'early', type: 'noop' }] })
      const page = await browser.open(`${first.url}/#/graphs`)
      await page.locator('.stream.live').waitFor()
      const row = (name: string) => page.locator('.graph-row', { hasText: name })
      await row('early').locator('.look-success').waitFor()
      await second.post({
        name: 'elsewhere',
        tasks: [gate.task('held'), { id: 'then', type: 'noop', depends_on: ['held'] }],
      })
      await row('elsewhere').locator('.look-running').waitFor()
      gate.open()
      await row('elsewhere').locator('.look-success').waitFor()
      expect(await row('elsewhere').textContent()).toContain('2 of 2 tasks')

      const services = await browser.open(`${first.url}/#/service`)
      const panel = services.getByRole('region', { name: 'Capacity' })
      await panel.getByRole('heading', { name: 'Replicas' }).waitFor()
      for (const control of controls) {
        const { replica } = await healthOf(control)
        const fact = panel.locator('.fact', { has: services.locator('dt', { hasText: new RegExp(`^${replica.id}$`) }) })
        await fact.getByText(control.url, { exact: true }).waitFor()
      }
      const violations = await services.evaluate(
        `${await Bun.file(axePath).text()}; axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id }) => id))`,
      )
      expect(violations).toEqual([])

      await third.post({ name: 'inherited', tasks: [{ id: 'ask', type: 'approval', params: { message: 'ok?' } }] })
      await row('inherited').locator('.look-asking').waitFor()
      await third.stop('SIGKILL')
      await panel.getByText(third.url).waitFor({ state: 'detached' })
      const reject = { method: 'POST', body: '{"who":"ada"}' }
      expect((await answered(first, '/tasks/ask/reject', reject)).status).toBe(200)
      await row('inherited').locator('.look-failed').waitFor()
      expect(browser.complaints).toEqual([])
    })
  },
)

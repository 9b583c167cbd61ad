/**
 * Goal: what people do with the dashboard works in a real browser, against the built executable, whatever tasks contain.
 * Method: chromium opens the page of a control service; each test follows one person.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { Gate } from './gate.ts'

setDefaultTimeout(180_000)

const axePath = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

/** Pixels that differ between two pictures (PNG, in base64). The browser draws round corners a little differently each time. */
async function changedPixels(browser: TestBrowser, pictures: readonly [string, string]): Promise<number> {
  const page = await browser.open('about:blank')
  const count = (await page.evaluate(`(async () => {
    const pixels = async (picture) => {
      const image = new Image()
      image.src = 'data:image/png;base64,' + picture
      await image.decode()
      const { width, height } = image
      const context = Object.assign(document.createElement('canvas'), { width, height }).getContext('2d')
      context.drawImage(image, 0, 0)
      return context.getImageData(0, 0, width, height).data
    }
    const [before, after] = await Promise.all(${JSON.stringify(pictures)}.map(pixels))
    return before.filter((value, at) => !(Math.abs(value - after[at]) <= 4)).length + Math.abs(before.length - after.length)
  })()`)) as number
  await page.context().close()
  return count
}

describe.skipIf(withoutChromium !== undefined)(
  `the dashboard${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  () => {
    let browser: TestBrowser
    let control: Control
    beforeAll(async () => {
      ;[browser, control] = await Promise.all([
        TestBrowser.start(),
        startControl({ env: { SERVICE_SHELL_POLICY: 'open' } }),
      ])
    })
    afterAll(async () => {
      await Promise.all([browser?.[Symbol.asyncDispose](), control?.dispose()])
    })

    /** Submits a graph and opens its page. */
    const openGraph = async (
      tasks: readonly object[],
      more: { body?: object; query?: string; from?: Control } = {},
    ) => {
      const from = more.from ?? control
      const response = await from.post({ tasks, ...more.body })
      const { graph_id } = (await response.json()) as { graph_id: string }
      const page = await browser.open(`${from.url}/#/graphs/${graph_id}${more.query ?? ''}`)
      return { page, graphId: graph_id }
    }
    const box = (page: Page, id: string) => page.locator('.box', { hasText: id })
    /** What axe finds on the page as it is. */
    const violations = async (page: Page, rules?: readonly string[]): Promise<string[]> => {
      const runOnly = rules === undefined ? '' : `, runOnly: ${JSON.stringify(rules)}`
      return (await page.evaluate(
        `${await Bun.file(axePath).text()}; axe.run({ resultTypes: ['violations']${runOnly} }).then(({ violations }) => violations.map(({ id, nodes }) =>
          id + ': ' + nodes.slice(0, 3).map(({ html, failureSummary }) => html.slice(0, 200) + failureSummary).join(' | ')))`,
      )) as string[]
    }
    const closed = async (page: Page) => {
      await page.context().close()
      expect(browser.complaints.splice(0)).toEqual([])
    }

    test('an empty service teaches how to begin, and the form submits an example that one sees move', async () => {
      // One task at a time: long enough for who cancels it on a busy machine.
      await using fresh = await startControl({ flags: ['--max-concurrency', '1'] })
      const page = await browser.open(fresh.url)
      await page.getByText('No graphs yet').waitFor()
      expect(await page.locator('.copy-line pre').first().textContent()).toContain(`curl -s ${fresh.url}/tasks`)
      await page.getByRole('link', { name: 'Submit an example' }).click()
      await page.getByRole('button', { name: 'Submit', exact: true }).click()
      await page.getByRole('heading', { name: 'build-and-test' }).waitFor()
      await page.locator('.box.look-running').first().waitFor()
      await page.locator('.box.look-success').first().waitFor()
      await page.getByRole('button', { name: 'Cancel' }).click()
      await page.getByRole('button', { name: 'Cancel the graph' }).click()
      await page.locator('.graph-state', { hasText: 'cancelled' }).waitFor()
      await closed(page)
    })

    test.each([
      ['#/graphs', 'light', 1280],
      ['#/graphs', 'dark', 390],
      ['#/graphs/some', 'dark', 1280],
    ] as const)(
      'the frame of %s is painted before the script runs, which takes it over, %s, %d wide',
      async (hash, colorScheme, width) => {
        const page = await browser.open('about:blank', { colorScheme, viewport: { width, height: 800 } })
        const held = Promise.withResolvers<void>()
        await page.route('**/assets/dashboard-*.js', async (route) => {
          await held.promise
          await route.continue()
        })
        const asked: string[] = []
        await page.route('**/graphs*', (route) => void asked.push(new URL(route.request().url()).pathname)) // never answered
        await page.route('**/graphs/*', (route) => void asked.push(new URL(route.request().url()).pathname))
        await page.goto(`${control.url}/${hash}`, { waitUntil: 'commit' })
        await page.locator('.top .brand').waitFor()
        const painted = `performance.getEntriesByName('first-contentful-paint').length`
        await until(() => page.evaluate(painted), 1)
        expect(await violations(page)).toEqual([])
        await page.evaluate(`void (globalThis.painted = document.querySelector('main'))`)
        const shown = async () => ({
          // A picture leaves an empty style behind.
          html: await page.evaluate(`document.querySelector('.page').outerHTML.replaceAll(' style=""', '')`),
          list: await page.locator('.graph-list').isVisible(),
          picture: (await page.screenshot()).toBase64(),
        })
        const before = await shown()
        held.resolve()
        await page.locator('.start-fault').waitFor({ state: 'detached' })
        expect(await page.evaluate(`document.querySelector('main') === globalThis.painted`)).toBe(true)
        const after = await shown()
        expect(after.list).toBe(before.list)
        expect(after.list).toBe(width > 760 || hash === '#/graphs')
        if (hash === '#/graphs') {
          expect({ ...after, picture: '' }).toEqual({ ...before, picture: '' })
          expect(await changedPixels(browser, [before.picture, after.picture])).toBe(0)
        }
        const keys = page.getByRole('dialog', { name: 'Keys' })
        await until(() => page.keyboard.press('?').then(() => keys.count()), 1)
        await page.keyboard.press('Escape')
        await keys.waitFor({ state: 'detached' })
        expect(asked.sort()).toEqual(hash === '#/graphs' ? ['/graphs'] : ['/graphs', '/graphs/some']) // each once
        await closed(page)
      },
    )

    test.each(['abort', 'refuse', 'throw'] as const)(
      'a page whose script does not start says so: %s',
      async (fault) => {
        const page = await browser.open('about:blank')
        await page.route('**/assets/dashboard-*.js', (route) => {
          if (fault === 'abort') return route.abort()
          return route.fulfill(
            fault === 'refuse'
              ? { status: 403, json: { error: 'no' } }
              : { contentType: 'text/javascript', body: 'throw new Error("broken")' },
          )
        })
        await page.goto(control.url)
        await page.getByText('The page has not started').waitFor()
        await page.unroute('**/assets/dashboard-*.js')
        await page.reload()
        await page.locator('.stream.live').waitFor()
        expect(await page.locator('.start-fault').count()).toBe(0)
        await page.context().close()
        browser.complaints.splice(0)
      },
    )

    test('a page whose script never arrives says so after a while', async () => {
      const page = await browser.open('about:blank')
      await page.route('**/assets/dashboard-*.js', () => {}) // never answered
      await page.goto(control.url, { waitUntil: 'commit' })
      const fault = page.locator('.start-fault')
      await page.locator('.top .brand').waitFor()
      await fault.waitFor({ state: 'hidden' })
      const passTime = `document.getAnimations().forEach((animation) => animation.finish())`
      await until(() => page.evaluate(passTime).then(() => fault.isVisible()))
      await page.context().close()
      browser.complaints.splice(0)
    })

    test('a stream of events that fails is told of, and no longer once it works', async () => {
      const page = await browser.open('about:blank')
      await page.route('**/events?*', (route) => route.fulfill({ status: 502, body: '<h1>Bad Gateway</h1>' }))
      await page.goto(control.url)
      const alert = page.getByRole('alert').filter({ hasText: 'the stream of events fails' })
      await alert.waitFor()
      expect(await alert.textContent()).toContain('status 502')
      expect(await violations(page)).toEqual([])
      await page.unroute('**/events?*')
      await page.locator('.stream.live').waitFor()
      await alert.waitFor({ state: 'detached' })
      await closed(page)
    })

    test('the drawing follows each task, and the list follows each graph', async () => {
      using gate = new Gate()
      const { page } = await openGraph([gate.task('first'), { id: 'then', type: 'noop', depends_on: ['first'] }], {
        body: { name: 'moving' },
      })
      await page.locator('.box.look-running', { hasText: 'first' }).waitFor()
      await page.locator('.box.look-pending', { hasText: 'then' }).waitFor()
      const before = await box(page, 'then').boundingBox()
      gate.open()
      await page.locator('.box.look-success', { hasText: 'then' }).waitFor()
      expect(await box(page, 'then').boundingBox()).toEqual(before)
      await page.goto(`${control.url}/#/graphs`)
      await page.locator('.stream.live').waitFor()
      await control.post({ name: 'arrived', tasks: [{ id: 'arrived', type: 'noop' }] })
      const row = page.locator('.graph-row', { hasText: 'arrived' })
      await row.locator('.look-success').waitFor()
      expect(await row.textContent()).toContain('1 of 1 task')
      await closed(page)
    })

    test('what a graph does at its end is drawn behind all else, and says what it waits for', async () => {
      using gate = new Gate()
      const { page } = await openGraph([gate.task('slow'), { id: 'quick', type: 'noop' }], {
        body: { scope: 'graph', on_end: [{ type: 'noop' }, { when: 'failed', type: 'noop' }] },
      })
      await page.locator('.box.look-pending', { hasText: 'on_end/0' }).waitFor()
      await box(page, 'on_end/0').click()
      await page.getByText('all other tasks of its graph have to end first').first().waitFor()
      const edgeOf = async (id: string) => (await box(page, id).first().boundingBox())!.x
      expect(await edgeOf('on_end/0')).toBeGreaterThan(await edgeOf('slow'))
      expect(await violations(page)).toEqual([])
      gate.open()
      await page.locator('.box.look-success', { hasText: 'on_end/0' }).waitFor()
      await closed(page)
    })

    test('the children of a task for each element appear, and the task counts them; thousands are one box', async () => {
      using gate = new Gate()
      const many = { id: 'many', type: 'noop', for_each: Array(3_000).fill(1), depends_on: ['gate'] }
      const few = { id: 'few', type: 'noop', for_each: [1, 2], depends_on: ['gate'] }
      const { page, graphId } = await openGraph([gate.task('gate'), few, many], { body: { scope: 'graph' } })
      await box(page, 'gate').waitFor()
      expect(await page.locator('.box').count()).toBe(3)
      gate.open()
      await page.locator('.box', { hasText: 'noop, 3000 of 3000' }).waitFor()
      await page.locator('.box', { hasText: 'few[1]' }).waitFor()
      await page.locator('.box.group', { hasText: 'many …' }).waitFor()
      expect(await page.locator('.box').count()).toBe(6)
      await page.goto(`${control.url}/#/graphs/${graphId}?view=table`)
      await page.locator('.task-row.child', { hasText: 'few[0]' }).click()
      await page.locator('h2', { hasText: 'few[0]' }).waitFor()
      await closed(page)
    })

    test('a group is a frame that one folds and opens, by mouse and keys, and folded it counts its elements', async () => {
      using gate = new Gate()
      const steps = [
        gate.task('wait'),
        { id: 'fail', type: 'shell', depends_on: ['wait'], params: { command: 'false' } },
        { id: 'clean', type: 'noop', depends_on: ['fail'], run_if: 'always' },
      ]
      const { page, graphId } = await openGraph(
        [
          { id: 'first', type: 'noop' },
          { id: 'each', depends_on: ['first'], for_each: [1, 2], tasks: steps },
          { id: 'last', type: 'noop', depends_on: ['each'], run_if: 'always' },
        ],
        { body: { scope: 'graph' } },
      )
      const child = page.locator('.box[title="each[1]/clean"]')
      const last = page.locator('.box[title="last"]')
      await child.waitFor() // children that appear open their group
      const area = (await page.locator('.group-area').boundingBox())!
      const inside = (await child.boundingBox())!
      expect(inside.x + inside.width).toBeLessThan(area.x + area.width)
      expect((await last.boundingBox())!.x).toBeGreaterThan(area.x + area.width)
      expect(await violations(page)).toEqual([])
      await page.getByRole('button', { name: 'Fold each' }).click()
      await child.waitFor({ state: 'detached' })
      const folded = page.locator('.box.folded.look-running')
      await folded.getByText('0/2 · 2 run').waitFor()
      expect(await page.locator('.box').count()).toBe(3)
      expect(await violations(page)).toEqual([])
      gate.open()
      await page.locator('.box.folded.look-failed').getByText('2/2 · 2 failed').waitFor()
      await page.reload()
      await page.locator('.box.folded').focus()
      await page.keyboard.press('Tab')
      await until(() => page.evaluate(`document.activeElement.ariaExpanded`), 'false')
      await page.keyboard.press('Enter')
      await child.waitFor()
      await page.keyboard.press('f')
      await child.waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Top down' }).click()
      await page.getByRole('button', { name: 'Open each' }).click()
      await child.waitFor()
      expect((await last.boundingBox())!.y).toBeGreaterThan((await child.boundingBox())!.y)
      await page.locator('.box.open').focus()
      await page.keyboard.press('ArrowDown')
      await until(() => page.evaluate(`document.activeElement.title`), 'each[0]/wait')
      // The pointer stays in the drawing, and what had the focus there is gone.
      await page.getByRole('button', { name: 'Close groups' }).focus()
      await page.keyboard.press('Enter')
      await child.waitFor({ state: 'detached' })
      await page.locator('.box.folded').waitFor()
      await page.goto(`${control.url}/#/service`)
      await page.goto(`${control.url}/#/graphs/${graphId}`) // as a link from elsewhere
      await page.locator('.box.folded').waitFor()
      await page.locator('.box.folded').click()
      await page.getByRole('heading', { name: 'each', exact: true }).waitFor()
      await closed(page)
    })

    test('a log grows while one looks, and a reload in the middle loses nothing', async () => {
      using dir = tempDir()
      const go = `${dir.path}/go`
      const script = `printf '\\033[32mgreen\\033[0m\\n'; echo trouble >&2; until [ -e ${go} ]; do sleep 0.05; done; echo the end`
      const { page } = await openGraph([{ id: 'talks', type: 'shell', params: { script } }], {
        query: '?task=talks&tab=log',
      })
      await page.locator('.log-line .fg-2', { hasText: 'green' }).waitFor()
      await page.locator('.log-line.stderr', { hasText: 'trouble' }).waitFor()
      await page.reload()
      await page.locator('.log-line .fg-2', { hasText: 'green' }).waitFor()
      await Bun.write(go, '')
      await page.locator('.log-line', { hasText: 'the end' }).waitFor()
      await page.locator('.box.look-success').waitFor()
      await page.getByRole('searchbox', { name: 'Find in log' }).fill('TROUBLE')
      await page.locator('.log-line.found', { hasText: 'trouble' }).waitFor()
      await closed(page)
    })

    test('what failed first is on top, with its last words and what it took with it', async () => {
      const { page, graphId } = await openGraph([
        { id: 'breaks', type: 'shell', params: { script: 'echo the last words >&2; exit 3' } },
        { id: 'lost', type: 'noop', depends_on: ['breaks'] },
      ])
      const card = page.locator('.failure-card')
      await card.getByText('the last words').waitFor()
      expect(await card.textContent()).toContain('1 task was skipped because of it')
      await card.getByText('What to try next').click()
      const command = await card.locator('.copy-line', { hasText: 'taskmill logs' }).locator('pre').textContent()
      expect(command).toBe(`taskmill logs ${graphId}/breaks --url ${control.url}`)
      const colours = (await page.evaluate(
        `['failed', 'skipped'].map((look) => getComputedStyle(document.querySelector('.box.look-' + look)).borderColor)`,
      )) as string[]
      expect(new Set(colours).size).toBe(2)
      await card.getByRole('link', { name: 'breaks' }).click()
      await page.locator('.task-panel', { hasText: 'exit_nonzero' }).waitFor()
      await closed(page)
    })

    test('what failed runs again at a click, and what did not says where its outcome comes from', async () => {
      using dir = tempDir()
      const script = `[ -e ${dir.path}/mended ]`
      const { page, graphId } = await openGraph(
        [
          { id: 'sound', type: 'noop' },
          { id: 'broken', type: 'shell', params: { script }, depends_on: ['sound'] },
          { id: 'optional', type: 'shell', params: { script: 'exit 1' }, continue_on_error: true },
          { id: 'remedy', type: 'noop', depends_on: ['sound'], run_if: 'failed' },
        ],
        { body: { scope: 'graph' } },
      )
      await page.locator('.failure-card', { hasText: 'broken' }).waitFor()
      await page.locator('.box.look-tolerated', { hasText: 'optional' }).waitFor()
      await page.locator('.box.look-unneeded', { hasText: 'remedy' }).waitFor()
      await Bun.write(`${dir.path}/mended`, '')
      await page.getByRole('button', { name: 'Rerun what failed' }).click()
      await page.locator('.box.look-success', { hasText: 'broken' }).waitFor()
      expect(page.url()).not.toContain(graphId)
      await box(page, 'sound').click()
      await page.getByRole('link', { name: `${graphId}/sound` }).waitFor()
      expect(await box(page, 'sound').textContent()).toContain('reused')
      await page.getByRole('button', { name: 'Rerun from here' }).click()
      await page.locator('.task-panel').waitFor({ state: 'detached' })
      await page.locator('.box.look-success', { hasText: 'broken' }).waitFor()
      expect(await box(page, 'sound').textContent()).not.toContain('reused')
      await closed(page)
    })

    test('a click that is repeated because its answer was lost makes one graph', async () => {
      const { page, graphId } = await openGraph([{ id: 'breaks', type: 'file', params: {} }], {
        body: { scope: 'graph', name: 'clicked twice' },
      })
      const rerun = page.getByRole('button', { name: 'Rerun what failed' })
      await rerun.waitFor()
      let lost = 0
      await page.route('**/rerun', async (route) => {
        await route.fetch() // the service has it
        lost++
        await route.abort()
      })
      await rerun.click()
      await page.getByText('the service cannot be reached').waitFor()
      await page.unroute('**/rerun')
      await rerun.click()
      await page.waitForURL((url) => !url.hash.includes(graphId))
      expect(lost).toBe(1)
      const graphs = await (await control.fetch('/graphs?name=clicked%20twice')).json()
      expect(graphs).toHaveLength(2)
      // Answered: the same click again is a new wish.
      await page.goBack()
      await page.waitForURL((url) => url.hash.includes(graphId))
      await rerun.click()
      await page.waitForURL((url) => !url.hash.includes(graphId))
      expect(await (await control.fetch('/graphs?name=clicked%20twice')).json()).toHaveLength(3)
      await page.goto(`${control.url}/#/submit`)
      const sent = page.waitForRequest((request) => request.method() === 'POST')
      await page.getByRole('button', { name: 'Submit', exact: true }).click()
      expect((await sent).headers()['idempotency-key']).toMatch(/^[0-9a-f]{32}$/)
      await page.locator('.graph-title').waitFor()
      await closed(page)
    })

    test('a task shows the input that it got, and the condition that it did not meet', async () => {
      const from = { $from: 'list', path: '/result/stdout' }
      const { page } = await openGraph(
        [
          { id: 'list', type: 'shell', params: { command: 'echo', args: ['-n', 'found it'] } },
          { id: 'use', type: 'shell', params: { command: 'echo', args: [from] }, depends_on: ['list'] },
          { id: 'never', type: 'noop', depends_on: ['list'], when: { ...from, equals: 'something else' } },
        ],
        { body: { scope: 'graph' }, query: '?task=use&tab=input' },
      )
      await page.getByRole('heading', { name: 'As it ran' }).waitFor()
      const tab = page.locator('.tab-input')
      await tab.getByText('found it').waitFor()
      await tab.getByRole('heading', { name: 'As submitted' }).waitFor()
      await page.locator('.box.look-unneeded', { hasText: 'never' }).click()
      await page.keyboard.press('o')
      await page.locator('.fact', { hasText: 'Only if' }).getByText('something else').waitFor()
      await closed(page)
    })

    test('keys, links and the back button lead to every place', async () => {
      const { page, graphId } = await openGraph([
        { id: 'k1', type: 'noop' },
        { id: 'k2', type: 'noop', depends_on: ['k1'] },
      ])
      const hash = () => page.evaluate('location.hash') as Promise<string>
      const at = (wanted: string) => until(hash, (found) => found === `#/graphs/${graphId}${wanted}`)
      await page.locator('.box.look-success', { hasText: 'k2' }).waitFor()
      await box(page, 'k1').focus()
      await page.keyboard.press('ArrowRight')
      await page.keyboard.press('Enter')
      await at('?task=k2')
      await page.keyboard.press('l')
      await at('?task=k2&tab=log')
      await page.keyboard.press('w')
      await at('?view=waterfall&task=k2&tab=log')
      await page.locator('.waterfall-row', { hasText: 'k1' }).waitFor()
      await page.goBack()
      await at('?task=k2&tab=log')
      await page.keyboard.press('Escape')
      await at('')
      await page.keyboard.press('/')
      await page.getByRole('searchbox', { name: 'Find a task or a graph' }).fill('k1')
      await page.keyboard.press('Enter')
      await at('?task=k1')
      await page.keyboard.press('?')
      await page.getByRole('dialog', { name: 'Keys' }).waitFor()
      await closed(page)
    })

    test('ids, errors and output full of markup are text', async () => {
      const evil = '<img src=x onerror="document.title=1"><script>document.title=1</script>&amp;\u202e'
      const script = `printf '%s\\n\\033]0;title\\007\\033[2J' '<b>bold</b><script>document.title=1</script>'; exit 1`
      const { page } = await openGraph(
        [
          { id: evil, type: 'shell', params: { script }, annotations: { [evil]: evil } },
          { id: `${evil} 2`, type: 'noop', depends_on: [evil] },
        ],
        { body: { name: '<h1>name</h1>', labels: { evil } } },
      )
      await page.locator('.failure-card').waitFor()
      for (const view of ['graph', 'waterfall', 'table']) {
        for (const tab of ['overview', 'log', 'input', 'output', 'attempts']) {
          await page.evaluate(
            `location.hash = location.hash.split('?')[0] + '?' + new URLSearchParams({ view: ${JSON.stringify(view)}, task: ${JSON.stringify(evil)}, tab: ${JSON.stringify(tab)} })`,
          )
          await page.locator(`.tab-${tab}`).waitFor()
        }
      }
      await page.evaluate(`location.hash = location.hash.replace('attempts', 'log')`)
      await page.locator('.log-line', { hasText: '<b>bold</b><script>' }).waitFor()
      expect(await page.locator('main img, main script, main b, main h1 h1').count()).toBe(0)
      expect(await page.title()).toBe('<h1>name</h1> · taskmill')
      await closed(page)
    })

    test('a restart of the service under the open page is caught up with', async () => {
      using dir = tempDir()
      using gate = new Gate()
      const port = await freePort()
      const start = () => startControl({ dataDir: `${dir.path}/data`, flags: ['--addr', `127.0.0.1:${port}`] })
      const first = await start()
      const { page } = await openGraph([gate.task('held'), { id: 'after', type: 'noop', depends_on: ['held'] }], {
        from: first,
      })
      await page.locator('.stream.live').waitFor()
      await first.stop('SIGKILL')
      await page.locator('.stream.connecting').waitFor()
      gate.open()
      await using second = await start()
      await page.locator('.box.look-success', { hasText: 'after' }).waitFor()
      await page.locator('.stream.live').waitFor()
      expect(second.url).toBe(first.url)
      await first.dispose()
      await closed(page)
    })

    test('a task that waits for approval is marked, shows its message, and is answered with a name and a reason', async () => {
      const text = `${'step\n'.repeat(60)}<b>not bold</b>`
      const { page } = await openGraph(
        [
          { id: 'plan', type: 'noop', params: { message: text } },
          {
            ...{ id: 'sure', type: 'approval', depends_on: ['plan'], timeout: 3_600_000 },
            params: { message: { $from: 'plan', path: '/result/message' } },
          },
          { id: 'second', type: 'approval', depends_on: ['sure'] },
          { id: 'done', type: 'noop', depends_on: ['second'], run_if: 'always' },
        ],
        { body: { scope: 'graph' } },
      )
      await page.locator('.box.look-asking', { hasText: 'sure' }).click()
      await page.getByText('Nothing of this graph runs: sure waits for approval: step step').waitFor()
      const card = page.getByRole('region', { name: 'Approval' })
      await card.getByText('<b>not bold</b>').waitFor()
      await card.getByText(/left to answer/).waitFor()
      expect(await violations(page)).toEqual([])
      await card.getByRole('button', { name: 'Approve' }).click()
      const dialog = page.getByRole('dialog', { name: 'Approve sure' })
      expect(await dialog.getByRole('button', { name: 'Approve the task' }).isDisabled()).toBe(true)
      await dialog.getByLabel('Your name').fill('\u0007')
      await dialog.getByRole('button', { name: 'Approve the task' }).click()
      await dialog.getByRole('alert').waitFor()
      expect(await violations(page)).toEqual([])
      await dialog.getByLabel('Your name').fill('Ada')
      await dialog.getByLabel('Reason, if you like').fill('it is sound')
      await dialog.getByRole('button', { name: 'Approve the task' }).click()
      await page.locator('.box.look-success', { hasText: 'sure' }).waitFor()
      await card.waitFor({ state: 'detached' })
      await page.getByRole('link', { name: 'Output' }).click()
      await page.getByText('it is sound').waitFor()
      // The name is known by now.
      await page.locator('.box.look-asking', { hasText: 'second' }).click()
      await page.getByRole('link', { name: 'Overview' }).click()
      await card.getByText('May it go on?').waitFor()
      await card.getByRole('button', { name: 'Reject' }).click()
      await page.getByRole('button', { name: 'Not now' }).click()
      await card.getByRole('button', { name: 'Reject' }).click()
      await page.getByRole('button', { name: 'Reject the task' }).click()
      await page.getByText('rejected by Ada').first().waitFor()
      await page.locator('.box.look-success', { hasText: 'done' }).waitFor()
      await closed(page)
    })

    test('a graph that waits for a person or for its next attempt looks so in the list, also as it changes', async () => {
      const page = await browser.open(`${control.url}/#/graphs`)
      await page.locator('.stream.live').waitFor()
      const submit = async (name: string, task: object) => {
        const response = await control.post({ name, scope: 'graph', tasks: [{ id: 'only', ...task }] })
        return ((await response.json()) as { graph_id: string }).graph_id
      }
      const asks = await submit('asks-somebody', { type: 'approval' })
      const retries = await submit('tries-again', {
        ...{
          type: 'shell',
          params: { script: 'exit 1' },
          retry: 1,
          backoff: { initial_ms: 3_600_000, max_ms: 3_600_000 },
        },
      })
      const row = (name: string) => page.locator('.graph-row', { hasText: name })
      const looks = async () => {
        await row('asks-somebody').locator('.look-asking').waitFor()
        await row('asks-somebody').getByText('waits for approval, 0 of 1 task').waitFor()
        await row('tries-again').locator('.look-backoff').waitFor()
        await row('tries-again').getByText('waits to retry, 0 of 1 task').waitFor()
      }
      await looks()
      await page.reload()
      await looks()
      expect(await violations(page)).toEqual([])
      const body = JSON.stringify({ who: 'Ada' })
      await control.fetch(`/graphs/${asks}/tasks/only/approve`, { method: 'POST', body })
      await row('asks-somebody').locator('.look-success').waitFor()
      await row('tries-again').click()
      await page.locator('.graph-state', { hasText: 'waits to retry' }).waitFor()
      await page
        .getByText(/^Nothing of this graph runs: only tries again in (59 m \d+ s|1 h 00 m): attempt 2 of 2 follows/)
        .waitFor()
      await control.fetch(`/graphs/${retries}/cancel`, { method: 'POST' })
      await page.locator('.graph-state', { hasText: 'cancelled' }).waitFor()
      await closed(page)
    })

    test('in a window of 1024 pixels the open task covers neither the failure card nor the failed box', async () => {
      const { page } = await openGraph(
        [
          { id: 'sound', type: 'noop' },
          { id: 'broken', type: 'shell', params: { script: 'echo its last words; exit 1' }, depends_on: ['sound'] },
        ],
        { body: { scope: 'graph' } },
      )
      await page.setViewportSize({ width: 1024, height: 768 })
      await page.locator('.failure-card', { hasText: 'its last words' }).waitFor()
      await box(page, 'broken').click()
      await page.locator('.task-panel').waitFor()
      const ends = async (name: string) => {
        const { x, width } = (await page.locator(name).boundingBox())!
        return x + width
      }
      const panel = (await page.locator('.task-panel').boundingBox())!
      expect(panel.width).toBeGreaterThan(350)
      expect(await ends('.failure-card')).toBeLessThanOrEqual(panel.x)
      expect(await ends('.box.look-failed')).toBeLessThanOrEqual(panel.x)
      expect(await violations(page)).toEqual([])
      await page.keyboard.press('Escape')
      await page.locator('.graph-list').waitFor()
      await closed(page)
    })

    test('a fast log has the numbers of its lines and its order, and is followed until one scrolls up', async () => {
      using dir = tempDir()
      const script = `seq -f 'line %g of the output' 9000; until [ -e ${dir.path}/go ]; do sleep 0.05; done
        seq -f 'line %g of the output' 9001 9423; echo the warning >&2; until [ -e ${dir.path}/end ]; do sleep 0.05; done`
      const { page } = await openGraph([{ id: 'fast', type: 'shell', params: { script } }], {
        ...{ body: { scope: 'graph' }, query: '?task=fast&tab=log' },
      })
      const numbered = (text: string, number: string) =>
        page.locator('.log-line', { hasText: text }).locator('.number', { hasText: number }).waitFor()
      await numbered('line 9000 of', '9000')
      expect(await page.getByRole('button', { name: 'Follow' }).count()).toBe(0)
      await page.reload() // what comes first is not the first line now
      await numbered('line 9000 of', '9000')
      await Bun.write(`${dir.path}/go`, '')
      await numbered('line 9423 of', '9423')
      await numbered('the warning', '1')
      const last = page.locator('.log-line').last()
      expect(await last.textContent()).toContain('the warning')
      expect(await page.getByRole('button', { name: 'Follow' }).count()).toBe(0)
      expect(await last.isVisible()).toBe(true)
      await page.locator('.log-lines').hover()
      await page.mouse.wheel(0, -2_000)
      await page.getByRole('button', { name: 'Follow' }).click()
      await page.getByRole('button', { name: 'Follow' }).waitFor({ state: 'detached' })
      await Bun.write(`${dir.path}/end`, '')
      await page.locator('.box.look-success').waitFor()
      await closed(page)
    })

    test('what waits for a task with children is drawn behind them, and a group says what most of its tasks are', async () => {
      const { page } = await openGraph(
        [
          { id: 'each', type: 'noop', for_each: [1, 2, 3] },
          { id: 'after', type: 'noop', depends_on: ['each'] },
          ...Array.from({ length: 1_000 }, (_, index) => ({
            ...{ id: `leaf-${index}`, type: 'noop', depends_on: ['after'] },
            ...(index === 0 && { run_if: 'failed' }),
          })),
        ],
        { body: { scope: 'graph' } },
      )
      const group = page.locator('.box.group', { hasText: 'leaf' })
      await group.getByText('1,000 tasks').waitFor()
      await page.locator('.graph-state', { hasText: 'skipped' }).waitFor()
      await page.locator('.box.group.look-success', { hasText: 'leaf' }).waitFor()
      const isCut = `(() => {
        const { clientWidth, scrollWidth } = document.querySelector('.box.group .type')
        return scrollWidth > clientWidth
      })()`
      expect(await page.evaluate(isCut)).toBe(false)
      const child = (await box(page, 'each[2]').boundingBox())!
      expect((await box(page, 'after').boundingBox())!.x).toBeGreaterThan(child.x + child.width)
      await page.locator('.graph-state', { hasText: '1,004 of 1,005 done, 1 skipped' }).waitFor()
      await closed(page)
    })

    test('each view marks its first frame for measurements', async () => {
      const { page, graphId } = await openGraph([{ id: 'one', type: 'noop' }], { body: { scope: 'graph' } })
      await page.locator('.box.look-success').waitFor()
      for (const view of ['graph', 'map', 'waterfall', 'table', 'table&state=success']) {
        await page.goto('about:blank')
        await page.goto(`${control.url}/#/graphs/${graphId}?view=${view}`)
        const marks = `['taskmill:data', 'taskmill:drawn'].map((name) => performance.getEntriesByName(name).length)`
        await until(
          () => page.evaluate(marks) as Promise<number[]>,
          ([data, drawn]) => data === 1 && drawn === 1,
        )
      }
      await closed(page)
    })

    test('a task that waits for a slot says so in a sentence, and times have one form', async () => {
      await using small = await startControl({ flags: ['--max-concurrency', '1'] })
      using gate = new Gate()
      await small.post({ name: 'in-the-way', tasks: [gate.task('in-the-way')] })
      const { page } = await openGraph([{ id: 'held', type: 'noop' }], { from: small })
      await page
        .getByText('Nothing of this graph runs: held waits: 1 of 1 slots are taken (--max-concurrency).')
        .waitFor()
      await page.locator('.graph-row', { hasText: 'in-the-way' }).click()
      await page.locator('.box.look-running .time', { hasText: /^\d+ s$/ }).waitFor()
      await page
        .locator('.graph-row .time', { hasText: /^\d+ s$/ })
        .first()
        .waitFor()
      gate.open()
      await page.locator('.box.look-success').waitFor()
      await closed(page)
    })

    test('a page that is open for long does not grow', async () => {
      const page = await browser.open(`${control.url}/#/graphs`)
      await page.locator('.stream.live').waitFor()
      const session = await page.context().newCDPSession(page)
      await session.send('Performance.enable')
      const measured = async () => {
        await session.send('HeapProfiler.collectGarbage')
        const { metrics } = await session.send('Performance.getMetrics')
        return (name: string) => metrics.find((metric) => metric.name === name)!.value
      }
      const tasks = Array.from({ length: 100 }, (_, index) => ({ id: `t${index}`, type: 'noop' }))
      const submit = async (from: number, to: number) => {
        for (let index = from; index < to; index++) {
          const response = await control.post({ name: `long-${index}`, scope: 'graph', tasks })
          expect(response.status).toBe(202)
        }
        await page
          .locator('.graph-row', { hasText: `long-${to - 1}` })
          .locator('.look-success')
          .waitFor()
      }
      await submit(0, 20)
      const before = await measured()
      await submit(20, 220) // more than 20,000 events
      const after = await measured()
      const MiB = 1024 * 1024
      expect(after('JSHeapUsedSize') - before('JSHeapUsedSize')).toBeLessThan(4 * MiB)
      expect(after('Nodes') - before('Nodes')).toBeLessThan(500)
      expect(after('JSEventListeners') - before('JSEventListeners')).toBeLessThan(100)
      await closed(page)
    })

    test('slots, queue and the runtime service are seen, on top and on the Service page', async () => {
      await using small = await startControl({
        flags: ['--max-concurrency', '2', '--runtime-url', 'http://127.0.0.1:1'],
      })
      using gate = new Gate()
      const { page } = await openGraph(
        ['a', 'b', 'c'].map((id) => gate.task(id)),
        { from: small },
      )
      await page.locator('.capacity-line', { hasText: '2/2' }).waitFor()
      await page.locator('.capacity-line', { hasText: '1 wait' }).click()
      const panel = page.getByRole('region', { name: 'Capacity' })
      await panel.getByText('1 wait for a slot').waitFor()
      expect(await panel.getByRole('meter', { name: 'Attempts' }).getAttribute('aria-valuetext')).toBe('2 of 2')
      await panel.getByText('Does not answer').waitFor()
      gate.open()
      await panel.getByText('nothing waits for a slot').waitFor()
      await closed(page)
    })

    test('a graph of 500 tasks is drawn whole, and again after a look at another view', async () => {
      const tasks = Array.from({ length: 500 }, (_, index) => ({
        ...{ id: `t${index}`, type: 'noop' },
        ...(index >= 20 && { depends_on: [`t${index - 20}`, `t${index - 11 - (index % 7)}`] }),
      }))
      const { page, graphId } = await openGraph(tasks)
      const allAreDrawn = () => until(() => page.locator('.box').count(), 500)
      await allAreDrawn()
      const elements = await page.evaluate(`document.querySelectorAll('.graph-view *').length`)
      expect(elements).toBeLessThan(5 * 500 + 100) // each costs time before the first frame
      const marks = `['taskmill:data', 'taskmill:drawn'].map((name) => performance.getEntriesByName(name).map((mark) => mark.startTime))`
      const times = (await until(
        () => page.evaluate(marks),
        (found) => (found as number[][]).every((times) => times.length > 0),
      )) as number[][]
      expect(times.map((found) => found.length)).toEqual([1, 1])
      expect(times[0]![0]!).toBeLessThan(times[1]![0]!)
      await page.keyboard.press('t')
      await page.locator('.task-table').waitFor()
      await page.evaluate(`location.hash = location.hash.split('?')[0]`)
      await allAreDrawn()
      // The first frame has the boxes that one sees, around the selected one, and few more.
      await page.addInitScript(`
        const mark = performance.mark.bind(performance)
        performance.mark = (name) => {
          if (name === 'taskmill:drawn') {
            const frame = document.querySelector('.graph-frame').getBoundingClientRect()
            const places = [...document.querySelectorAll('.box')].map((box) => box.getBoundingClientRect())
            const isSeen = ({ left, right, top, bottom }) =>
              right > frame.left && left < frame.right && bottom > frame.top && top < frame.bottom
            globalThis.first = { count: places.length, seen: places.filter(isSeen).length }
          }
          return mark(name)
        }`)
      await page.goto(`${control.url}/#/graphs/${graphId}?task=t250`)
      await page.reload()
      const first = (await until(() => page.evaluate('globalThis.first'))) as { count: number; seen: number }
      await box(page, 't250').and(page.locator('[aria-pressed=true]')).waitFor()
      expect(first.seen).toBeGreaterThan(20)
      expect(first.count).toBeLessThan(first.seen + 150)
      await allAreDrawn()
      const seenOfAll = await page.evaluate(`(performance.mark('taskmill:drawn'), globalThis.first)`)
      expect(seenOfAll).toEqual({ count: 500, seen: first.seen })
      await closed(page)
    })

    test('a graph of 12,000 tasks is a map of cells, whose counts lead to every task', async () => {
      const tasks = Array.from({ length: 12_000 }, (_, index) => ({
        ...{ id: `t${index}`, type: 'noop' },
        ...(index >= 11_990 && { type: 'shell', params: { script: 'echo beyond; exit 1' } }),
      }))
      const { page, graphId } = await openGraph(tasks, { body: { scope: 'graph' }, query: '?view=map' })
      await page.getByText('first 10,000 of 12,000 tasks').waitFor()
      const counts = page.locator('.heat-counts')
      await counts.getByText('11,990 succeeded').waitFor()
      const cells = page.getByRole('listbox', { name: 'Tasks in their order' })
      await cells.click({ position: { x: 3, y: 3 } })
      await page.locator('.task-panel', { hasText: 't0' }).waitFor()
      await cells.focus()
      await page.keyboard.press('Home')
      await page.keyboard.press('ArrowRight')
      await page.keyboard.press('Enter')
      await page.locator('.task-panel', { hasText: 't1' }).waitFor()
      await page.keyboard.press('Escape')
      await counts.getByText('10 failed').click()
      await page.getByText('10 read').waitFor()
      await page.locator('.task-row', { hasText: 't11995' }).click()
      await page.locator('.task-panel', { hasText: 'exit status 1' }).waitFor()
      expect(await page.evaluate('location.hash')).toBe(`#/graphs/${graphId}?view=table&task=t11995&state=failed`)
      await page.getByRole('link', { name: 'Only failed: show all' }).click()
      await page.getByText('10000 tasks').waitFor()
      await page.getByRole('searchbox', { name: 'Filter tasks' }).fill('t11000')
      await page.locator('.task-row', { hasText: 't11000' }).waitFor()
      await page.keyboard.press('Escape')
      await page.locator('.brand').focus()
      await page.keyboard.press('/')
      await page.getByRole('searchbox', { name: 'Find a task or a graph' }).fill('t11998')
      await page.locator('.search-results', { hasText: 't11998' }).waitFor()
      await page.keyboard.press('Enter')
      await page.locator('.task-panel', { hasText: 't11998' }).getByText('exit status 1').first().waitFor()
      await closed(page)
    })

    test.each(['light', 'dark'] as const)('axe finds nothing in dialogs, %s', async (colorScheme) => {
      using gate = new Gate()
      await using fresh = await startControl({ env: { SERVICE_TOKEN: 'sesame' } })
      const page = await browser.open(fresh.url, { colorScheme, reducedMotion: 'reduce' })
      const found: string[] = []
      const look = async (name: string) =>
        void found.push(...(await violations(page)).map((violation) => `${name}: ${violation}`))
      await page.getByText('Sign in to taskmill').waitFor()
      await look('sign-in')
      await page.getByLabel('Token').fill('wrong')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByText('Not signed in: the token is wrong').waitFor()
      await look('refused token')
      await page.getByLabel('Token').fill('sesame')
      await page.keyboard.press('Enter')
      await page.getByText('No graphs yet').waitFor()
      await look('empty')
      const body = JSON.stringify({ tasks: [gate.task('held'), { id: 'after', type: 'noop', depends_on: ['held'] }] })
      const headers = { authorization: 'Bearer sesame' }
      const { graph_id } = (await (await fresh.fetch('/tasks', { method: 'POST', body, headers })).json()) as {
        graph_id: string
      }
      await page.goto(`${fresh.url}/#/graphs/${graph_id}`)
      await page.locator('.box.look-running').waitFor()
      // Key after key, as fast as they can be typed: the first round without a look.
      for (const key of ['?', 'Escape', '/', 'Escape', 'c', 'Escape']) await page.keyboard.press(key)
      for (const [key, name] of [
        ['?', 'Keys'],
        ['/', 'Search'],
        ['c', 'Cancel this graph?'],
      ] as const) {
        await page.keyboard.press(key)
        const dialog = page.getByRole('dialog', { name })
        await dialog.waitFor()
        await look(name)
        expect(await page.evaluate(`document.activeElement.closest('dialog') !== null`)).toBe(true)
        await page.keyboard.press('Escape')
        await dialog.waitFor({ state: 'detached' })
      }
      expect(await page.evaluate(`document.getAnimations().length`)).toBe(0) // although a task runs
      expect(found).toEqual([])
      await closed(page)
    })

    test('the tab key goes through the page in order, and a dialog gives the focus back', async () => {
      const { page } = await openGraph([
        { id: 'one', type: 'noop' },
        { id: 'two', type: 'noop', depends_on: ['one'] },
      ])
      await page.locator('.box.look-success', { hasText: 'two' }).waitFor()
      await page.locator('.capacity-line').waitFor()
      const focused = () =>
        page.evaluate(`document.activeElement.innerText.trim() || document.activeElement.ariaLabel`) as Promise<string>
      const stops: string[] = []
      for (let stop = 0; stop < 8; stop++) {
        await page.keyboard.press('Tab')
        stops.push((await focused()).split('\n')[0]!)
      }
      expect(stops.map((stop) => stop.replace(/^slots.*/, 'slots'))).toEqual([
        ...['Skip to the content', 'taskmill', 'Graphs', 'Schedules', 'Service', 'slots', 'Search', 'Submit'],
      ])
      await page.getByRole('button', { name: 'Search' }).focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog', { name: 'Search' }).waitFor()
      await page.keyboard.press('Escape')
      await until(focused, (name) => name.startsWith('Search'))
      await page.locator('.skip').focus()
      await page.keyboard.press('Enter')
      await page.keyboard.press('Tab')
      expect(await focused()).toBe('Copy id')
      await closed(page)
    })

    test.each(['light', 'dark'] as const)('axe finds nothing, wide and narrow, %s', async (colorScheme) => {
      const leaves = Array.from({ length: 14 }, (_, index) => ({
        id: `leaf-${index}`,
        type: 'noop',
        depends_on: ['good'],
      }))
      const body = {
        ...{ name: `accessible-${colorScheme}`, scope: 'graph' },
        tasks: [
          { id: 'bad', type: 'shell', params: { script: 'echo words; exit 1' }, retry: 1 },
          { id: 'skipped', type: 'noop', depends_on: ['bad'] },
          { id: 'good', type: 'noop' },
          ...leaves,
        ],
      }
      const { graph_id } = (await (await control.post(body)).json()) as { graph_id: string }
      const page = await browser.open(control.url, { colorScheme, reducedMotion: 'reduce' })
      const task = 'task=bad'
      const hashes = [
        ...['#/graphs', '#/submit', '#/service', `#/graphs/${graph_id}`, `#/graphs/${graph_id}?view=waterfall`],
        ...['overview', 'log', 'input', 'output', 'attempts'].map((tab) => `#/graphs/${graph_id}?${task}&tab=${tab}`),
        ...[`#/graphs/${graph_id}?view=table&state=failed`, `#/graphs/${graph_id}?view=map`],
      ]
      // The structure is the same in the dark.
      const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined
      const found: string[] = []
      const look = async (hash: string) => {
        await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
        await until(
          () => page.locator('body').textContent(),
          (text) => !text!.includes('Reading'),
        )
        found.push(...(await violations(page, rules)).map((violation) => `${hash}: ${violation}`))
      }
      for (const hash of hashes) await look(hash)
      await page.setViewportSize({ width: 390, height: 800 })
      for (const hash of hashes.slice(3, 6)) await look(hash)
      expect(found).toEqual([])
      await closed(page)
    })
  },
)

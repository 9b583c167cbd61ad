/**
 * Measures how long Debian's chromium takes to draw a graph of 500 tasks, from the opening of the page and from the
 * arrival of the data; and how long until it paints anything of a page with 1,000 graphs.
 *
 * The page marks the arrival (`taskmill:data`) and the drawn graph (`taskmill:drawn`). The page of the floor draws
 * plain boxes and lines. Each page is opened in a new context, without a cache, in a browser that has shown a page
 * before. Browser and server share the cores.
 */
import { existsSync } from 'node:fs'
import type { Browser, Page } from 'playwright-core'
import { Connection } from '../load/connection.ts'
import { get, layered, postTasks } from '../load/requests.ts'
import { median } from '../statistics.ts'
import type { WatchingWorkload } from './sizes.ts'
import { submittedGraphs } from './submitted.ts'

const CHROMIUM = '/usr/bin/chromium'

/** Goal: milliseconds from the opening of the page to the drawn graph. */
const GOAL_MS = 300

/** Milliseconds from opening the page within which anything of it should be painted. */
const PAINT_GOAL_MS = 200

const without = existsSync(CHROMIUM) ? '' : ` (not measured: ${CHROMIUM} is missing, apt-get install chromium)`

export const drawing: WatchingWorkload = {
  name: 'drawing',
  measures: ({ drawnTasks, openedGraphs }) => [
    {
      ...{ key: 'drawing_opened', unit: 'ms', better: 'lower', goal: { figure: GOAL_MS } },
      label: `graph of ${drawnTasks} tasks drawn in chromium, from opening the page${without}`,
    },
    { key: 'drawing_data', label: '… from its data', unit: 'ms', better: 'lower' },
    {
      ...{ key: 'list_painted', unit: 'ms', better: 'lower', goal: { figure: PAINT_GOAL_MS } },
      label: `page with ${openedGraphs.toLocaleString('en')} graphs, first paint${without}`,
    },
    { key: 'list_drawn', label: '… the list drawn', unit: 'ms', better: 'lower' },
  ],
  async run(target, { sizes, freshPrefix }) {
    if (without !== '') return {}
    await using server = await target.start()
    const graphId = await endedGraph(server.url, layered(freshPrefix(), sizes.drawnTasks))
    const browser = await openBrowser()
    try {
      const times: Moments[] = []
      for (let i = 0; i < sizes.drawings; i++) {
        const moments = await drawn(browser, `${server.url}/#/graphs/${graphId}`)
        if (moments === undefined) return {} // the page has no marks
        times.push(moments)
      }
      const drawing = {
        drawing_opened: median(times.map(({ drawnMs }) => drawnMs)),
        drawing_data: median(times.map(({ dataMs, drawnMs }) => drawnMs - dataMs)),
      }
      await submittedGraphs(server.url, freshPrefix(), sizes.openedGraphs)
      const lists: Moments[] = []
      for (let i = 0; i < sizes.drawings; i++) {
        const moments = await drawn(browser, `${server.url}/`)
        if (moments === undefined) return drawing
        lists.push(moments)
      }
      return {
        ...drawing,
        list_painted: median(lists.map(({ paintedMs }) => paintedMs)),
        list_drawn: median(lists.map(({ drawnMs }) => drawnMs)),
      }
    } finally {
      await browser.close()
    }
  },
}

/** Submits a graph. Resolves with its id once it has ended. */
async function endedGraph(url: string, tasks: readonly object[]): Promise<string> {
  using connection = await Connection.open(url)
  const { graph_id } = JSON.parse(await connection.expect(202, postTasks(tasks)))
  await connection.expect(200, get(`/graphs/${graph_id}?wait_ms=60000`))
  return graph_id
}

async function openBrowser(): Promise<Browser> {
  const { chromium } = await import('playwright-core') // takes a third of a second, so only this workload loads it
  const browser = await chromium.launch({
    executablePath: CHROMIUM,
    // Chromium has no sandbox as root. /dev/shm may be small.
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    // On a signal, the bench kills the browser itself.
    ...{ handleSIGINT: false, handleSIGTERM: false, handleSIGHUP: false },
  })
  const page = await browser.newPage()
  await page.goto('data:text/html,<p>first')
  await page.close()
  return browser
}

/** Milliseconds since the page was opened. */
interface Moments {
  /** Anything of the page. */
  readonly paintedMs: number
  readonly dataMs: number
  readonly drawnMs: number
}

async function drawn(browser: Browser, url: string): Promise<Moments | undefined> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  try {
    const page = await context.newPage()
    await page.goto(url)
    return await momentsOf(page)
  } finally {
    await context.close()
  }
}

/** Reads the marks through the debugger, because the policy of the page forbids evaluation. Undefined without marks. */
async function momentsOf(page: Page): Promise<Moments | undefined> {
  for (const end = performance.now() + MARKED_WITHIN_MS; performance.now() < end; await Bun.sleep(POLL_MS)) {
    const [paintedMs, dataMs, drawnMs] = (await page.evaluate(MARKS)) as (number | null)[]
    if (paintedMs != null && dataMs != null && drawnMs != null) return { paintedMs, dataMs, drawnMs }
  }
  return undefined
}

/** Milliseconds until a page counts as failed. A busy machine takes less. */
const MARKED_WITHIN_MS = 10_000

/** Milliseconds between two polls. Shorter pauses would delay the drawing. */
const POLL_MS = 50

const MARKS = `['first-contentful-paint', 'taskmill:data', 'taskmill:drawn'].map((name) => performance.getEntriesByName(name)[0]?.startTime)`

/**
 * Goal: many open pages cost little, slow nobody down for ever, and leave nothing behind.
 * Method: the executable with 1,000 connections that ask as the dashboard does, and a few pages in chromium. Figures are
 * those of Linux for the process; the bench says how fast it is.
 */
import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { TestBrowser, withoutChromium } from '../support/chromium.ts'
import { type Control, startControl } from '../support/control.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

/** For a machine on which everything takes ten times as long. */
const TEST_MS = 300_000
const patient = { patienceMs: 120_000 }

const PAGES = 1_000
/** Connections that are opened at the same time. */
const TOGETHER = 50

const descriptorsOf = ({ process: { pid } }: Control) => readdirSync(`/proc/${pid}/fd`).length

function memoryOf({ process: { pid } }: Control): number {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) * 1024
}

async function openStreams(control: Control): Promise<number> {
  const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
  return Number(/^service_control_event_streams (\d+)$/m.exec(text)![1])
}

const noneOpen = (control: Control) =>
  until(
    () => openStreams(control),
    (count) => count === 0,
    patient,
  )

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

/** What an open page asks for: the state, then the events since. */
async function openPage(control: Control, path: string, events: string): Promise<RawClient> {
  const page = await RawClient.connect(control)
  page.send(get(path))
  const answer = await until(
    () => page.received,
    (received) => /\r\n\r\n.*[\]}]$/s.test(received),
    patient,
  )
  const seq = /^x-event-seq: (\d+)\r$/im.exec(answer)![1]
  page.received = ''
  page.send(get(`${events}?after=${seq}`))
  await until(
    () => page.received,
    (received) => received.includes(': open\n\n') || received.includes('HTTP/1.1 503 '),
    patient,
  )
  return page
}

/** Opens `count` pages, a few at a time: of the `graphs` by turns, or of the list if there are none. */
async function openPages(control: Control, count: number, graphs: readonly string[] = []): Promise<RawClient[]> {
  const pages: RawClient[] = []
  while (pages.length < count) {
    const some = Array.from({ length: Math.min(TOGETHER, count - pages.length) }, (_, i) => {
      const graph = graphs[(pages.length + i) % graphs.length]
      return graph === undefined
        ? openPage(control, '/graphs?limit=100', '/events')
        : openPage(control, `/graphs/${graph}`, `/graphs/${graph}/events`)
    })
    pages.push(...(await Promise.all(some)))
  }
  return pages
}

const closeAll = (pages: readonly RawClient[]) => {
  for (const page of pages) page[Symbol.dispose]()
}

/** Submits graphs of one no-op task, and gives their ids. */
async function submitGraphs(control: Control, prefix: string, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let i = 0; i < count; i++) {
    const response = await control.post({ tasks: [{ id: `${prefix}-${i}`, type: 'noop' }] })
    expect(response.status).toBe(202)
    ids.push(((await response.json()) as SubmitResponse).graph_id)
  }
  return ids
}

/** The ids of the graphs whose end a page was told of. */
const endsIn = ({ received }: RawClient) =>
  [...received.matchAll(/event: graph_ended\ndata: .*?"graph_id":"([^"]+)"/g)].map(([, id]) => id!)

describe(`${PAGES} open pages`, () => {
  test(
    'on idle graphs are told nothing, while others submit and are told everything, and leave nothing behind',
    async () => {
      await using control = await startControl()
      const graphs = await submitGraphs(control, 'idle', PAGES)
      await control.allEnded()
      const descriptorsBefore = descriptorsOf(control)
      const memory: number[] = []
      for (let round = 0; round < 3; round++) {
        const idle = await openPages(control, PAGES, graphs)
        const lists = await openPages(control, 5)
        expect(await openStreams(control)).toBe(PAGES + 5)
        const submitted = await submitGraphs(control, `round-${round}`, 100)
        for (const list of lists) {
          await until(
            () => endsIn(list).length,
            (count) => count === submitted.length,
            patient,
          )
          expect(endsIn(list).toSorted()).toEqual(submitted.toSorted())
        }
        for (const { received } of idle) expect(received).not.toContain('event: ')
        closeAll([...idle, ...lists])
        await noneOpen(control)
        await until(
          () => descriptorsOf(control),
          (count) => count <= descriptorsBefore + 5, // connections of this test that are kept open
          patient,
        )
        memory.push(memoryOf(control))
      }
      // A stream that is not released keeps more than 5 KB: 2,000 of them would be 10 MB at least. The heap shrinks after
      // a while only.
      await until(
        () => memoryOf(control) - memory[0]!,
        (growth) => growth < 30e6,
        patient,
      )
    },
    TEST_MS,
  )

  test(
    'resume together after a restart, and are told what they missed',
    async () => {
      await using control = await startControl()
      const [graph] = await submitGraphs(control, 'first', 1)
      await control.allEnded()
      const position = (await control.fetch('/graphs')).headers.get('x-event-seq')
      const missed = await submitGraphs(control, 'missed', 2_000)
      await control.stop()
      await using again = await startControl({ dataDir: control.dataDir })
      const before = memoryOf(again)
      const pages: RawClient[] = []
      for (let i = 0; i < PAGES; i += TOGETHER) {
        const some = await Promise.all(Array.from({ length: TOGETHER }, () => RawClient.connect(again)))
        for (const page of some) page.send(get(`/graphs/${missed[pages.length]}/events?after=${position}`))
        pages.push(...some)
      }
      for (const page of pages) {
        await until(
          () => endsIn(page).length,
          (count) => count > 0,
          patient,
        )
      }
      pages.forEach((page, i) => {
        expect(endsIn(page)).toEqual([missed[Math.floor(i / TOGETHER) * TOGETHER]!])
      })
      // Each of them alone needs a block of the history, which is 128 KB. The heap shrinks after a while only.
      await until(
        () => memoryOf(again) - before,
        (growth) => growth < PAGES * 100e3,
        patient,
      )
      expect((await again.fetch(`/graphs/${graph}`)).status).toBe(200)
      closeAll(pages)
      await noneOpen(again)
    },
    TEST_MS,
  )
})

describe('a page too many', () => {
  test(
    'gets 503, and nothing is kept of thousands of them',
    async () => {
      await using control = await startControl({ flags: ['--max-event-streams', '20'] })
      const pages = await openPages(control, 20)
      const refused = () => control.fetch('/events').then(async (response) => [response.status, await response.json()])
      const error = '20 event streams are open (--max-event-streams); close one or try later'
      expect(await refused()).toEqual([503, { error }])
      const refuseAll = async (count: number) => {
        for (let i = 0; i < count; i += TOGETHER) await Promise.all(Array.from({ length: TOGETHER }, refused))
      }
      await refuseAll(2_000)
      const before = memoryOf(control)
      await refuseAll(20_000)
      await until(
        () => memoryOf(control) - before,
        (growth) => growth < 20e6,
        patient,
      )
      expect(await openStreams(control)).toBe(20)
      const [id] = await submitGraphs(control, 'heard', 1)
      for (const page of pages) {
        await until(
          () => endsIn(page),
          (ends) => ends.includes(id!),
          patient,
        )
      }
      closeAll(pages)
      await noneOpen(control)
      closeAll(await openPages(control, 20))
    },
    TEST_MS,
  )
})

test(
  'a client that leaves before its stream begins leaves no stream behind',
  async () => {
    await using control = await startControl()
    const [graph] = await submitGraphs(control, 'left', 1)
    const paths = ['/events', '/events?after=0', `/graphs/${graph}/events`, `/graphs/${graph}/events?after=1`]
    for (let i = 0; i < 400; i++) {
      const client = await RawClient.connect(control)
      client.send(get(paths[i % paths.length]!))
      if (i % 3 === 0) await Bun.sleep(i % 5) // the moment at which the client leaves varies
      client[Symbol.dispose]()
    }
    await noneOpen(control)
  },
  TEST_MS,
)

test.skipIf(withoutChromium !== undefined)(
  `pages in chromium follow their graphs beside ${PAGES} others${withoutChromium === undefined ? '' : ` (${withoutChromium})`}`,
  async () => {
    await using control = await startControl()
    await using browser = await TestBrowser.start()
    const graphs = await submitGraphs(control, 'idle', 100)
    const others = await openPages(control, PAGES, graphs)
    const list = await browser.open(`${control.url}/#/graphs`)
    await list.locator('.stream.live').waitFor()
    const response = await control.post({ name: 'seen', tasks: [{ id: 'seen', type: 'noop' }] })
    const { graph_id } = (await response.json()) as SubmitResponse
    await list.locator('.graph-row', { hasText: 'seen' }).locator('.look-success').waitFor()
    const page = await browser.open(`${control.url}/#/graphs/${graph_id}`)
    await page.locator('.box.look-success', { hasText: 'seen' }).waitFor()
    for (const open of [list, page]) await open.context().close()
    expect(browser.complaints).toEqual([])
    closeAll(others)
    await noneOpen(control)
  },
  TEST_MS,
)

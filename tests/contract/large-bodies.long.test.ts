/** Bodies of many megabytes: others are answered meanwhile, and the graph is there after a crash. Against the built service. */
import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

/** Bytes of parameters in one task. */
const PAD_BYTES = 100_000

const largeGraph = (prefix: string, tasks: number) =>
  JSON.stringify({
    tasks: Array.from({ length: tasks }, (_, i) => ({
      ...{ id: `${prefix}-${i}`, type: 'noop' },
      params: { message: String(i).padEnd(PAD_BYTES, 'x') },
    })),
  })

/** Numbers of the graphs in each segment of the journal; graphs get them in the order in which they are read. */
const graphsInSegments = (dataDir: string): number[][] =>
  readdirSync(dataDir)
    .filter((name) => name.startsWith('journal-'))
    .sort()
    .map((name) => readFileSync(join(dataDir, name), 'latin1').matchAll(/\{"graph_ordinal":(\d+),"graph_id"/g))
    .map((graphs) => [...graphs].map(([, ordinal]) => Number(ordinal)))

const flags = ['--persist-interval', '1h']

/** Sends `text` and meanwhile small graphs, then kills the service. */
async function sentAmongOthers(dataDir: string, text: string, how: string) {
  await using control = await startControl({ dataDir, flags })
  const body = how === 'in chunks' ? new Response(text).body! : text
  let isAnswered = false
  const answer = control.fetch('/tasks', { method: 'POST', body, headers: { 'idempotency-key': 'k' } }).finally(() => {
    isAnswered = true
  })
  let others = 0
  const submitOthers = async () => {
    while (!isAnswered) await control.submit([{ id: `other-${others++}`, type: 'noop' }])
  }
  // Several at a time, so that on a busy machine too some arrive while the large graph is checked.
  await Promise.all([submitOthers(), submitOthers(), submitOthers(), submitOthers()])
  expect((await answer).status).toBe(202)
  await control.ended('t-299')
  await control.stop('SIGKILL')
  // The large graph is a segment of its own. Others that were begun after it are on disk before it.
  const [before, large, ...behind] = graphsInSegments(dataDir)
  expect([large?.length, behind.length]).toEqual([1, 1])
  return { dataDir, others, wereOthersMeanwhile: Math.max(...before!) > large![0]! }
}

test.each(['with its length', 'in chunks'])(
  'a graph of 30 MB, sent %s, is kept whole; others are answered meanwhile',
  async (how) => {
    using dir = tempDir()
    const text = largeGraph('t', 300)
    // A busy machine may not send any in time: it may need several tries.
    let tries = 0
    const { dataDir, others } = await until(
      () => sentAmongOthers(join(dir.path, String(tries++)), text, how),
      ({ wereOthersMeanwhile }) => wereOthersMeanwhile,
    )

    await using after = await startControl({ dataDir, flags })
    const tasks = await after.allEnded()
    expect(tasks.length).toBe(300 + others)
    const message = (tasks.find(({ id }) => id === 't-299')!.params as { message: string }).message
    expect([message.length, message.trim().startsWith('299')]).toEqual([PAD_BYTES, true])
    const again = await after.post(text, { 'idempotency-key': 'k' })
    expect([again.status, ((await again.json()) as { accepted: number }).accepted]).toEqual([202, 300])
  },
)

test.each(['with its length', 'in chunks'])(
  'a body sent %s whose sender gives up is no error of the service',
  async (how) => {
    await using control = await startControl()
    const part = 'x'.repeat(6 * 1024 * 1024)
    const isWhole = how === 'with its length'
    const head = isWhole
      ? `Content-Length: ${2 * part.length}\r\n\r\n`
      : `Transfer-Encoding: chunked\r\n\r\n${part.length.toString(16)}\r\n`
    {
      using client = await RawClient.connect(control)
      client.send(`POST /tasks HTTP/1.1\r\nHost: localhost\r\n${head}`)
      client.send(part.slice(0, 100_000))
      // The service has begun to read it once it answers another request.
      expect((await control.fetch('/health')).status).toBe(200)
    }
    const line = await until(() => control.log.find(({ path }) => path === '/tasks'))
    expect(line).toMatchObject({ level: 'info', msg: 'request given up', status: 499 })
  },
)

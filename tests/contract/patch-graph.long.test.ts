/**
 * Goal: a graph that is patched 1,000 times, while the service has other work and is killed, ends as its tasks say.
 * Method: several callers patch one graph at the same time. What each answer says is what the graph must have in the end.
 */
import { expect, test } from 'bun:test'
import type { GraphDetails } from '../../shared/contract/graphs.ts'
import type { PatchResponse } from '../../shared/contract/patch.ts'
import { startControl } from '../support/control.ts'
import { ended, read, submit } from '../support/scoped-graphs.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const PATCHES = 1_000
const CALLERS = 8
const TIMEOUT_MS = 120_000

test(
  'a graph that is patched 1,000 times under load ends as its tasks say',
  async () => {
    using dir = tempDir()
    const start = () => startControl({ dataDir: dir.path })
    await using first = await start()
    const gate = { id: 'gate', type: 'approval', params: { message: 'go?' } }
    const id = await submit(first, [gate])
    const expected = new Map<string, readonly string[]>([['gate', []]])
    /** Tasks that stay, and those that may go: nothing depends on these. */
    const stable = ['gate']
    const open: string[] = []
    let next = 0
    const caller = async (control: typeof first, upTo: number) => {
      while (next < upTo) {
        const name = `n${next++}`
        const depends_on = [stable[(next * 7919) % stable.length]!]
        const gone = next % 2 === 0 ? open.shift() : undefined
        const other = next % 5 === 0 ? open.shift() : undefined
        const body = {
          add: [{ id: name, type: 'noop', depends_on }],
          remove: gone === undefined ? [] : [gone],
          change: other === undefined ? {} : { [other]: { priority: 7 } },
        }
        const answer = await control.fetch(`/graphs/${id}`, { method: 'PATCH', body: JSON.stringify(body) })
        const text = await answer.text()
        expect([answer.status, text]).toEqual([200, expect.any(String)])
        const { added, removed } = JSON.parse(text) as PatchResponse
        for (const one of added) expected.set(one, depends_on)
        for (const one of removed) expected.delete(one)
        const isOpen = Number(name.slice(1)) % 2 === 1
        ;(isOpen ? open : stable).push(name)
        await control.submit([{ id: `load-${name}`, type: 'noop' }])
      }
    }
    const run = (control: typeof first, upTo: number) =>
      Promise.all(Array.from({ length: CALLERS }, () => caller(control, upTo)))
    await run(first, PATCHES / 2)
    await first.stop('SIGKILL')
    await using second = await start()
    await run(second, PATCHES)
    await until(async () => (await read(second, id, 'gate')).waiting?.reason, 'approval')
    await second.fetch(`/graphs/${id}/tasks/gate/approve`, { method: 'POST', body: '{"who":"ada"}' })
    const graph: GraphDetails = await ended(second, id)
    expect([graph.state, graph.revision]).toEqual(['success', PATCHES])
    expect(Object.fromEntries(graph.tasks.map(({ id, depends_on = [] }) => [id, depends_on]))).toEqual(
      Object.fromEntries(expected) as never,
    )
  },
  TIMEOUT_MS,
)

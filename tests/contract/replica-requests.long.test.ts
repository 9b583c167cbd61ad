/**
 * Requests between replicas of control that take long, go wrong, or meet a takeover.
 * Source: docs/cluster.md.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Control } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { answered, describeReplicas, healthOf, LONG_LEASE } from '../support/replicas.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const noop = (id: string) => ({ id, type: 'os', tool_name: 'noop' })

describeReplicas('requests between replicas', (cluster) => {
  test('wait as long as they ask for, and for the first byte of a followed log', async () => {
    using each = await cluster()
    using temp = tempDir()
    const go = join(temp.path, 'go')
    const [first, second] = await Promise.all([
      each.replica(LONG_LEASE, { SERVICE_SHELL_POLICY: 'open' }),
      each.replica(LONG_LEASE),
    ])
    await using _ = first
    await using __ = second
    const script = `${waitFor(go)}; echo said`
    await first.submit([
      { id: 'quiet', type: 'os', tool_name: 'shell', params: { command: 'sh', args: ['-c', script] } },
    ])
    await first.reached('quiet', 'running')
    const followed = [{}, { accept: 'text/event-stream' }].map(async (headers) => {
      const answer = await second.fetch('/tasks/quiet/logs?follow=true', { headers })
      return [answer.status, await answer.text()]
    })
    const waited = await second.fetch('/tasks/quiet?wait_ms=4000')
    expect([waited.status, await waited.json()]).toMatchObject([200, { id: 'quiet', status: 'running' }])
    await Bun.write(go, '')
    expect(await followed[0]).toEqual([200, 'said\n'])
    expect(await followed[1]).toEqual([200, expect.stringContaining('event: ')])
  })

  test('take no answer of anybody else at the address of the owner', async () => {
    using each = await cluster()
    using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('a page') })
    const port = await freePort()
    const at = (advertised: number | undefined) =>
      each.replica(['--advertise', `http://127.0.0.1:${advertised}`, ...LONG_LEASE])
    await using first = await at(port)
    await using second = await at(other.port)
    await using third = await each.replica(['--addr', `127.0.0.1:${port}`, ...LONG_LEASE])
    const idOf = async (control: Control) => (await healthOf(control)).replica.id
    const [one, two, three] = [await idOf(first), await idOf(second), await idOf(third)]
    await first.submit([noop('a')])
    await second.submit([noop('b')])
    await third.submit([noop('c')])
    await Promise.all([first.ended('a'), second.ended('b'), third.ended('c')])
    for (const path of ['/tasks', '/graphs']) {
      const list = await third.fetch(path)
      expect(list.headers.get('x-missing-replicas')?.split(',').map(Number).sort()).toEqual([one, two])
      expect(await list.json()).toHaveLength(1)
    }
    const texts = async (id: string) => {
      const answers = [await third.fetch(`/tasks/${id}`), await third.post({ tasks: [noop(id)] })]
      return await Promise.all(answers.map(async (answer) => `${answer.status} ${await answer.text()}`))
    }
    for (const text of await texts('a')) {
      expect(text).toStartWith('503 ')
      expect(text).toContain(`: replica ${three} answers at this address (see --advertise); try again`)
    }
    for (const text of await texts('b')) {
      expect(text).toStartWith('503 ')
      expect(text).toContain('no replica answers 200 at this address, or one with another token (see --advertise)')
    }
    const own = await first.fetch('/tasks/a')
    expect([own.status, own.headers.get('x-taskmill-replica')]).toEqual([200, null])
    const through = await first.fetch('/tasks/c')
    expect([through.status, through.headers.get('x-taskmill-replica')]).toEqual([200, null])
  })

  test('find all graphs of a list, each once, or name the replica whose graphs change hands', async () => {
    using each = await cluster()
    const [first, second, third] = await Promise.all([
      each.replica(LONG_LEASE),
      each.replica(LONG_LEASE),
      each.replica(LONG_LEASE),
    ])
    await using _ = first
    await using __ = second
    await using ___ = third
    for (let i = 0; i < 150; i++) await first.submit([noop(`a${i}`)])
    await first.ended('a149')
    const idOf = async (control: Control) => String((await healthOf(control)).replica.id)
    const known = new Set(await Promise.all([first, second, third].map(idOf)))
    const faults: string[] = []
    let lists = 0
    let isOver = false
    const read = async (control: Control, path: string) => {
      const others = known.difference(new Set([await idOf(control)]))
      while (!isOver) {
        const answer = await control.fetch(path)
        const lacks = answer.headers.get('x-missing-replicas')
        const entries = (await answer.json()) as { id?: string; graph_id: string }[]
        const distinct = new Set(entries.map(({ graph_id }) => graph_id)).size
        if (distinct !== entries.length) faults.push(`${path}: ${entries.length} entries of ${distinct} graphs`)
        // On a busy machine another one may answer too late, and is named, too.
        if (lacks?.split(',').some((id) => !others.has(id))) faults.push(`${path}: lacks ${lacks}`)
        if (lacks === null && distinct < 150) faults.push(`${path}: lacks graphs of nobody, has ${distinct}`)
        lists++
      }
    }
    const readers = [second, third].flatMap((control) => [read(control, '/tasks'), read(control, '/graphs?limit=500')])
    await first.stop()
    const counts = () => Promise.all([second, third].map(async (control) => (await healthOf(control)).replica.graphs))
    await until(counts, ([mine, others]) => mine! + others! === 150, { patienceMs: 50_000 })
    const before = lists
    await until(
      async () => lists,
      (count) => count > before + 8,
    )
    isOver = true
    await Promise.all(readers)
    expect(faults).toEqual([])
  })

  test('tell the states of tasks to who repeats a submission after its replica is gone', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(), each.replica()])
    await using _ = first
    await using __ = second
    const init = { method: 'POST', headers: { 'idempotency-key': 'k' }, body: JSON.stringify({ tasks: [noop('a')] }) }
    expect((await first.fetch('/tasks?wait_ms=10000', init)).status).toBe(202)
    await first.stop('SIGKILL')

    const repeated = await answered(second, '/tasks?wait_ms=10000', init)
    expect(await repeated.json()).toMatchObject({ tasks: [{ id: 'a', status: 'success' }], all_terminal: true })
  })

  test('see a large graph that changes hands as a whole, or not at all', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(), each.replica()])
    await using _ = first
    await using __ = second
    const held = { id: 'held', type: 'os', tool_name: 'sleep', params: { duration_ms: 600_000 } }
    const tasks = Array.from({ length: 20_000 }, (_, i) => ({ ...noop(`t${i}`), depends_on: i % 2 ? ['held'] : [] }))
    const { graph_id } = await first.submit([held, ...tasks])
    await until(
      async () => (await first.metrics()).tasks_succeeded,
      (count) => count === 10_000,
      { patienceMs: 60_000 },
    )
    await first.submit([noop('later')]) // accepted once all that ended before is in the database
    await first.stop('SIGKILL')

    const seen = new Set<string>()
    const look = async (path: string) => {
      const answer = await second.fetch(path)
      const body = (await answer.json()) as { counts?: object; status?: string }
      seen.add(`${path.split('/')[1]} ${answer.status} ${JSON.stringify(body.counts ?? body.status)}`)
      return answer.status
    }
    const last = ['/tasks/held', '/tasks/t19999', `/graphs/${graph_id}`]
    await until(
      async () => await Promise.all(last.map(look)),
      (statuses) => statuses.every((status) => status === 200),
      { patienceMs: 60_000 },
    )
    const whole = [...seen].filter((text) => !text.includes(' 503 '))
    expect(whole.filter((text) => text.startsWith('graphs '))).toHaveLength(1)
    expect(whole.find((text) => text.startsWith('graphs '))).toContain('"success":10000')
    expect(whole.filter((text) => text.includes(' 404 '))).toEqual([])
  }, 180_000)

  test('find no task that is removed or accepted just now', async () => {
    using each = await cluster()
    const [first, second] = await Promise.all([each.replica(LONG_LEASE), each.replica(LONG_LEASE)])
    await using _ = first
    await using __ = second
    const statuses = new Set<number>()
    for (let i = 0; i < 10; i++) {
      await first.submit([noop('a')])
      await first.ended('a')
      const requests = [first, first, first].map((control) => control.fetch('/tasks/a', { method: 'DELETE' }))
      for (const { status } of await Promise.all(requests)) statuses.add(status)
    }
    expect([...statuses].sort()).toEqual([204, 404])
  })
})

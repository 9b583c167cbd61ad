/**
 * `concurrency`: graphs of a group of which only some run at a time. Method: tasks that last until a file is there, and that
 * note when they begin and end; kills of the service between.
 */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const shell = (id: string, script: string, more: object = {}) => ({ id, type: 'shell', params: { script }, ...more })
const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const deploy = (more: object = {}) => ({ group: 'deploy', ...more })

async function world(more: { readonly flags?: readonly string[] } = {}) {
  const dir = tempDir()
  const order = join(dir.path, 'order')
  writeFileSync(order, '')
  const options = { env: { SERVICE_SHELL_POLICY: 'open' }, dataDir: join(dir.path, 'data'), ...more }
  return {
    start: () => startControl(options),
    /** A task that notes its begin and its end, which waits for `open`. */
    noted: (id: string, extra: object = {}) =>
      shell(id, `echo +${id} >> ${order}; ${waitFor(join(dir.path, id))}; echo -${id} >> ${order}`, extra),
    file: (name: string) => join(dir.path, name),
    open: (...ids: string[]) => {
      for (const id of ids) writeFileSync(join(dir.path, id), '')
    },
    lines: async () => (await Bun.file(order).text()).trim().split('\n'),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  }
}

async function submit(control: Control, tasks: readonly object[], concurrency: object, more: object = {}) {
  const response = await control.post({ tasks, concurrency, ...more })
  expect(response.status).toBe(202)
  return ((await response.json()) as { graph_id: string }).graph_id
}

const waitingOf = async (control: Control, id: string) => (await control.get(id)).waiting

describe('a graph waits for a place of its group', () => {
  test('in the order of acceptance, also over kills, and says which graphs hold the places', async () => {
    using here = await world()
    const { noted, open, lines } = here
    let first: string
    {
      await using control = await here.start()
      first = await submit(control, [noted('a'), noop('a2', { depends_on: ['a'] })], deploy())
      await submit(control, [noted('b'), noop('b2', { depends_on: ['b'] })], deploy())
      await submit(control, [noted('c')], deploy())
      await submit(control, [noop('other')], { group: 'other' })
      await control.ended('other')
      await until(lines, ['+a'])
      const waiting = { reason: 'group' as const, group: 'deploy', graphs: [first] }
      for (const id of ['b', 'b2', 'c']) expect(await control.get(id)).toMatchObject({ status: 'pending', waiting })
      expect((await waitingOf(control, 'a2'))?.reason).toBe('dependencies')
      await control.stop('SIGKILL')
    }
    {
      await using control = await here.start()
      await until(lines, ['+a', '+a'])
      expect(await waitingOf(control, 'b')).toEqual({ reason: 'group', group: 'deploy', graphs: [first] })
      open('a')
      await until(lines, ['+a', '+a', '-a', '+b'])
      expect((await control.get('a2')).status).toBe('success')
      expect((await waitingOf(control, 'c'))?.reason).toBe('group')
      await control.stop('SIGKILL')
    }
    await using control = await here.start()
    await until(lines, ['+a', '+a', '-a', '+b', '+b'])
    expect((await waitingOf(control, 'c'))?.reason).toBe('group')
    open('b', 'c')
    await control.allEnded()
    expect((await lines()).slice(-4)).toEqual(['+b', '-b', '+c', '-c'])
  })

  test('by its own limit, and none overtakes another one', async () => {
    using here = await world()
    const { noted, open, lines } = here
    await using control = await here.start()
    await submit(control, [noted('a')], deploy({ limit: 2 }))
    await submit(control, [noted('b')], deploy({ limit: 2, on_full: null }))
    await until(async () => (await lines()).sort(), ['+a', '+b'])
    await submit(control, [noted('single')], deploy({ limit: null }))
    await submit(control, [noted('wide')], deploy({ limit: 9 }))
    expect((await waitingOf(control, 'wide'))?.reason).toBe('group')
    open('a')
    await control.ended('a')
    expect((await waitingOf(control, 'wide'))?.reason).toBe('group')
    open('b')
    await until(async () => (await lines()).slice(-2).sort(), ['+single', '+wide'])
    open('single', 'wide')
    await control.allEnded()
  })

  test('and can be cancelled or deleted there, and what its rules start then waits as well', async () => {
    using here = await world()
    await using control = await here.start()
    await submit(control, [here.noted('a')], deploy())
    const cancelled = await submit(control, [noop('b')], deploy())
    const cleaning = [noop('c'), noop('clean', { depends_on: ['c'], run_if: 'always' })]
    const cleans = await submit(control, cleaning, deploy())
    expect((await control.fetch(`/graphs/${cancelled}/cancel`, { method: 'POST' })).status).toBe(202)
    expect(await control.get('b')).toMatchObject({ status: 'cancelled', error: 'task cancelled' })
    expect((await control.fetch(`/graphs/${cancelled}`, { method: 'DELETE' })).status).toBe(204)
    expect((await control.fetch('/tasks/c/cancel', { method: 'POST' })).status).toBe(202)
    expect(await control.get('clean')).toMatchObject({ status: 'pending', waiting: { reason: 'group' } })
    expect((await control.fetch(`/graphs/${cleans}`, { method: 'DELETE' })).status).toBe(409)
    here.open('a')
    expect((await control.ended('clean')).status).toBe('success')
  })

  test('as a rerun, which is a submission', async () => {
    using here = await world()
    await using control = await here.start()
    const id = await submit(control, [noop('done'), shell('again', 'exit 1', { depends_on: ['done'] })], deploy())
    await control.ended('again')
    await submit(control, [here.noted('a')], deploy())
    const rerun = await control.fetch(`/graphs/${id}/rerun`, { method: 'POST' })
    expect(rerun.status).toBe(202)
    const { graph_id } = (await rerun.json()) as { graph_id: string }
    const again = async () => (await control.fetch(`/graphs/${graph_id}/tasks/again`)).json()
    expect(await again()).toMatchObject({ status: 'pending', waiting: { reason: 'group' } })
    here.open('a')
    await until(async () => ((await again()) as { status: string }).status, 'failed')
  })
})

test('the answer about a graph and the list of graphs show its group as it was submitted', async () => {
  using here = await world()
  await using control = await here.start()
  const concurrency = deploy({ limit: 2, on_full: null })
  const grouped = await submit(control, [noop('a')], concurrency)
  const { graph_id: single } = await control.submit([noop('b')])
  const shown = async (path: string) => (await control.fetch(path)).json()
  expect(await shown(`/graphs/${grouped}`)).toMatchObject({ concurrency })
  expect(await shown(`/graphs/${single}`)).not.toHaveProperty('concurrency')
  const rows = (await shown('/graphs')) as { graph_id: string; concurrency?: object }[]
  expect(rows.map(({ graph_id, concurrency }) => [graph_id, concurrency])).toEqual([
    [single, undefined],
    [grouped, concurrency],
  ])
  await control.ended('a')
  await control.stop('SIGKILL')
  await using again = await here.start()
  expect(await (await again.fetch(`/graphs/${grouped}`)).json()).toMatchObject({ concurrency })
})

test('a graph that must not wait is refused, and nothing of it is stored', async () => {
  using here = await world()
  await using control = await here.start()
  const holder = await submit(control, [here.noted('a')], deploy({ on_full: 'refuse' }))
  const graph = { tasks: [noop('b')], concurrency: deploy({ on_full: 'refuse' }) }
  const error = `concurrency: group "deploy" is full (limit 1): graph ${holder} has not ended`
  for (let i = 0; i < 2; i++) {
    const refused = await control.post(graph, { 'Idempotency-Key': 'k' })
    expect([refused.status, await refused.json()]).toEqual([409, expect.objectContaining({ error })])
  }
  const dryRun = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(graph) })
  expect(await dryRun.json()).toMatchObject({ valid: false, errors: [{ message: error }] })
  expect((await control.fetch('/tasks/b')).status).toBe(404)
  here.open('a')
  await control.ended('a')
  expect((await control.post(graph, { 'Idempotency-Key': 'k' })).status).toBe(202)
  expect((await control.post(graph, { 'Idempotency-Key': 'k' })).status).toBe(202)
  await control.ended('b')
})

describe('cancel_oldest', () => {
  const newest = deploy({ on_full: 'cancel_oldest' })

  test('cancels running and waiting graphs until the new one fits, and starts it once they have ended', async () => {
    using here = await world({ flags: ['--kill-grace', '100ms'] })
    const { noted, open, lines } = here
    await using control = await here.start()
    const oldest = await submit(control, [noted('a'), noop('a2', { depends_on: ['a'] })], deploy())
    const waiting = await submit(control, [noop('b')], deploy())
    await until(lines, ['+a'])
    const by = await submit(control, [noted('c')], newest)
    const error = `task cancelled: graph ${by} takes its place in group "deploy"`
    for (const id of ['a', 'b']) expect(await control.ended(id)).toMatchObject({ status: 'cancelled', error })
    await until(lines, ['+a', '+c'])
    expect((await control.get('c')).started_at! >= (await control.get('a')).finished_at!).toBe(true)
    const lineOf = ({ msg }: { msg?: unknown }) => msg === 'graph cancelled: another takes its place'
    expect(control.log.filter(lineOf).map(({ graph_id, by }) => [graph_id, by])).toEqual([
      [oldest, by],
      [waiting, by],
    ])
    open('c')
    expect((await control.ended('c')).status).toBe('success')
  })

  test('names the new graph also after a kill while a task is cancelling', async () => {
    // The task ignores SIGTERM until the service is killed.
    using here = await world({ flags: ['--kill-grace', '30s'] })
    const deaf = shell('a', `trap '' TERM; echo $$ > ${here.file('pid')}; while :; do sleep 0.05; done`)
    let by: string
    {
      await using control = await here.start()
      await submit(control, [deaf], deploy())
      const pid = await until(
        async () =>
          Number(
            await Bun.file(here.file('pid'))
              .text()
              .catch(() => '0'),
          ),
        (pid) => pid > 0,
      )
      by = await submit(control, [noop('b')], newest)
      await control.reached('a', 'cancelling')
      await control.stop('SIGKILL')
      process.kill(pid, 'SIGKILL') // else the next start waits for it
    }
    await using control = await here.start()
    const message = `task cancelled: graph ${by} takes its place in group "deploy"`
    expect(await control.ended('a')).toMatchObject({
      ...{ status: 'cancelled', error: message, runtime: { error: { code: 'cancelled', message } } },
    })
    expect((await control.ended('b')).status).toBe('success')
  })

  test('ends a task of a runtime service first', async () => {
    await using pair = await startPair()
    const { control } = pair
    const script = (id: string) => ({
      id,
      type: 'runtime',
      params: { execution: { script: `echo runs; ${waitFor(pair.file(id))}` } },
    })
    await submit(control, [script('old')], newest)
    await pair.running('old')
    const by = await submit(control, [script('new')], newest)
    await pair.running('new')
    expect(await control.get('old')).toMatchObject({
      ...{ status: 'cancelled', error: `task cancelled: graph ${by} takes its place in group "deploy"` },
    })
    expect((await pair.there('old')).status).not.toBe('running')
    writeFileSync(pair.file('new'), '')
    expect((await control.ended('new')).status).toBe('success')
  })

  test('is made up for after a kill', async () => {
    using here = await world()
    const { noted, open } = here
    const ids: string[] = []
    {
      await using control = await here.start()
      await submit(control, [noted('a')], deploy())
      // The cancel of a large graph takes longer than its acceptance.
      const many = Array.from({ length: 20_000 }, (_, i) => noop(`m${i}`, { depends_on: ['a0'] }))
      ids.push(await submit(control, [noted('a0'), ...many], deploy({ limit: 2 })))
      const response = control.post({ tasks: [noted('c')], concurrency: newest })
      expect((await response).status).toBe(202)
      await control.stop('SIGKILL')
    }
    await using control = await here.start()
    for (const id of ['a', 'a0']) expect((await control.ended(id)).status).toBe('cancelled')
    open('c')
    expect((await control.ended('c')).status).toBe('success')
  })
})

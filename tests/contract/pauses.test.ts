/** Pauses of graphs, types of tasks and the whole service: what waits, what goes on, and what a kill leaves. */
import { describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import type { GraphDetails, GraphSummary } from '../../shared/contract/graphs.ts'
import {
  GraphPauseAnswer,
  ListedPause,
  MAX_PAUSE_BODY_BYTES,
  MAX_PAUSE_WHY_CHARACTERS,
  MAX_PAUSED_TYPES,
  PauseAnswer,
} from '../../shared/contract/pauses.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { errorOf } from '../support/answers.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startPair } from '../support/pair.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { tempDir } from '../support/temp.ts'
import { tokensFile } from '../support/tokens.ts'
import { until } from '../support/until.ts'

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const approval = (id: string, more: object = {}) => ({ id, type: 'approval', params: {}, ...more })

const call = (control: Control, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  control.fetch(path, { method: 'POST', headers, ...(body !== undefined && { body: JSON.stringify(body) }) })

async function changed(control: Control, path: string, body?: object): Promise<PauseAnswer | GraphPauseAnswer> {
  const answer = await call(control, path, body)
  if (answer.status !== 200) throw new Error(`${path}: ${await errorOf(answer)}`)
  return checkedAnswer(path.startsWith('/graphs') ? GraphPauseAnswer : PauseAnswer, await answer.json())
}

const listed = async (control: Control): Promise<readonly ListedPause[]> =>
  ((await (await control.fetch('/pauses')).json()) as unknown[]).map((each) => checkedAnswer(ListedPause, each))

const json = async <T>(control: Control, path: string) => (await (await control.fetch(path)).json()) as T

const waitsFor = (control: Control, id: string, reason: string) =>
  until(
    () => control.get(id),
    ({ waiting }) => waiting?.reason === reason,
  )

const pausesIn = async (control: Control) => {
  const text = await (await control.fetch('/metrics', { headers: { accept: 'text/plain' } })).text()
  return [...text.matchAll(/^service_control_paused\{of="(\w+)"\} (\d+)$/gm)].map(([, of, count]) => `${of} ${count}`)
}

describe('a graph', () => {
  test('starts nothing while it is paused, says so, and goes on afterwards', async () => {
    await using control = await startControl()
    const { graph_id } = await control.submit([approval('a'), noop('b', { depends_on: ['a'] }), noop('c')])
    await waitsFor(control, 'a', 'approval')
    const first = await changed(control, `/graphs/${graph_id}/pause`, { why: 'look at it' })
    expect(first).toMatchObject({ graph_id, paused: true, why: 'look at it' })
    const again = await changed(control, `/graphs/${graph_id}/pause`)
    expect(again).toEqual({ graph_id, paused: true, since: first.since! })
    await call(control, '/tasks/a/approve', { who: 'ada' })
    const { waiting } = await waitsFor(control, 'b', 'pause')
    expect(waiting?.detail).toBe(`the graph is paused since ${first.since}`)
    const details = await json<GraphDetails>(control, `/graphs/${graph_id}`)
    expect(details).toMatchObject({ state: 'running', pause: { since: first.since! } })
    const ids = async (query: string) =>
      (await json<GraphSummary[]>(control, `/graphs?${query}`)).map(({ graph_id }) => graph_id)
    await control.submit([noop('other')])
    expect(await ids('paused=true')).toEqual([graph_id])
    expect(await ids('paused=false')).toHaveLength(1)
    expect(await listed(control)).toEqual([])
    expect(await pausesIn(control)).toEqual(['service 0', 'type 0', 'graph 1'])
    expect(await changed(control, `/graphs/${graph_id}/resume`)).toEqual({ graph_id, paused: false })
    await control.ended('b')
    expect(await json(control, `/graphs/${graph_id}`)).not.toHaveProperty('pause')
    const events = await (await control.fetch(`/graphs/${graph_id}/events?after=0&until=ended`)).text()
    const told = events.split('\n').flatMap((line) => /^event: (graph_.*)$/.exec(line)?.[1] ?? [])
    expect(told).toEqual(['graph_accepted', 'graph_paused', 'graph_paused', 'graph_resumed', 'graph_ended'])
    expect(await errorOf(await call(control, `/graphs/${graph_id}/pause`))).toBe(`409 graph has ended: ${graph_id}`)
    expect(await changed(control, `/graphs/${graph_id}/resume`)).toEqual({ graph_id, paused: false })
    expect((await call(control, '/graphs/none/pause')).status).toBe(404)
  })

  test('is cancelled while it is paused', async () => {
    await using control = await startControl()
    await changed(control, '/pause')
    const { graph_id } = await control.submit([noop('a'), noop('b', { depends_on: ['a'], run_if: 'always' })])
    await changed(control, `/graphs/${graph_id}/pause`)
    await changed(control, '/resume')
    await waitsFor(control, 'a', 'pause')
    expect((await call(control, `/graphs/${graph_id}/cancel`)).status).toBe(202)
    const { state, pause } = await json<GraphDetails>(control, `/graphs/${graph_id}`)
    expect([state, pause]).toEqual(['cancelled', undefined])
  })
})

describe('the service and types', () => {
  test('stay paused over kills, take graphs, and go on where they were', async () => {
    using dir = tempDir()
    const start = () => startControl({ dataDir: join(dir.path, 'data') })
    let paused: string
    {
      await using control = await start()
      const { graph_id } = await control.submit([approval('asked'), noop('next', { depends_on: ['asked'] })])
      paused = graph_id
      await waitsFor(control, 'asked', 'approval')
      await changed(control, `/graphs/${paused}/pause`, { why: 'own' })
      expect(await changed(control, '/pause', { type: 'noop', why: 'x' })).toMatchObject({
        type: 'os.noop',
        paused: true,
      })
      await changed(control, '/pause', { why: 'moving the rack' })
      await control.submit([noop('later'), approval('unasked')])
      await control.stop('SIGKILL')
    }
    {
      await using control = await start()
      expect((await listed(control)).map(({ type, why }) => [type, why])).toEqual([
        ['os.noop', 'x'],
        [undefined, 'moving the rack'],
      ])
      const health = await json(control, '/health')
      expect(await json(control, '/runtime')).toMatchObject({ pauses: await listed(control) })
      expect(health).toMatchObject({ status: 'ok', paused_since: expect.any(String), paused_types: ['os.noop'] })
      expect((await control.fetch('/readyz')).status).toBe(200)
      for (const id of ['later', 'unasked']) {
        const { waiting } = await waitsFor(control, id, 'pause')
        expect(waiting?.detail).toMatch(/^the service is paused since .*: moving the rack$/)
      }
      await waitsFor(control, 'asked', 'approval')
      expect((await call(control, '/tasks/asked/approve', { who: 'ada' })).status).toBe(200)
      expect((await call(control, '/tasks/unasked/approve', { who: 'ada' })).status).toBe(409)
      await changed(control, '/resume')
      await waitsFor(control, 'unasked', 'approval')
      expect((await waitsFor(control, 'later', 'pause')).waiting?.detail).toMatch(
        /^type os.noop is paused since .*: x$/,
      )
      expect((await waitsFor(control, 'next', 'pause')).waiting?.detail).toMatch(/^the graph is paused since .*: own$/)
      await control.stop('SIGTERM') // what a pack has, not the journal
    }
    await using control = await start()
    expect(await pausesIn(control)).toEqual(['service 0', 'type 1', 'graph 1'])
    await changed(control, '/resume', { type: 'os.noop' })
    await control.ended('later')
    await waitsFor(control, 'next', 'pause')
    await changed(control, `/graphs/${paused}/resume`)
    await control.ended('next')
    expect(await json(control, '/health')).not.toHaveProperty('paused_types')
  })

  test('what a runtime service runs goes on over a restart, and its retry waits', async () => {
    using dir = tempDir()
    const gate = join(dir.path, 'open')
    await using pair = await startPair()
    const script = `${waitFor(gate)}; exit 3`
    await pair.control.submit([
      { id: 'a', type: 'runtime.script', params: { script }, retry: 1, backoff: { initial_ms: 1 } },
    ])
    await pair.control.reached('a', 'running')
    await until(
      () => pair.control.get('a'),
      ({ runtime }) => runtime?.status === 'running',
    )
    await changed(pair.control, '/pause', { type: 'runtime' })
    await pair.control.stop('SIGKILL')
    await pair.startControl()
    writeFileSync(gate, '')
    await until(
      () => pair.control.get('a'),
      ({ attempts }) => attempts?.length === 1, // how the one that went on has ended
    )
    const { attempt, waiting } = await waitsFor(pair.control, 'a', 'pause')
    expect([attempt, waiting?.detail]).toEqual([1, expect.stringMatching(/^type runtime is paused/)])
    await changed(pair.control, '/resume', { type: 'runtime' })
    expect(await pair.control.ended('a')).toMatchObject({ status: 'failed', attempt: 2 })
  })

  test('refuse what they cannot keep, with the field', async () => {
    await using control = await startControl()
    const refused = async (path: string, body: unknown) => errorOf(await call(control, path, body))
    const long = 'x'.repeat(MAX_PAUSE_WHY_CHARACTERS + 1)
    expect(await refused('/pause', { why: long })).toContain(
      `why: expected string of at most ${MAX_PAUSE_WHY_CHARACTERS} characters`,
    )
    expect(await refused('/pause', { type: 'shel' })).toMatch(/^400 unknown task type: shel .*did you mean "shell"/)
    expect(await refused('/pause', { reason: 'x' })).toBe('400 unknown field "reason" (did you mean "why"?)')
    expect(await refused('/pause', [])).toStartWith('400 ')
    expect((await call(control, '/pause', 'x'.repeat(MAX_PAUSE_BODY_BYTES + 1))).status).toBe(413)
    for (let i = 0; i < MAX_PAUSED_TYPES; i++) await changed(control, '/pause', { type: `os.tool${i}` })
    expect(await refused('/pause', { type: 'shell' })).toStartWith(`409 ${MAX_PAUSED_TYPES} types are paused already`)
    expect((await changed(control, '/pause')).paused).toBe(true)
  })
})

test('the client, programs and models pause and resume', async () => {
  await using control = await startControl()
  const client = async (...args: string[]) => (await runClient(args, { url: control.url })).envelope
  const { graph_id } = await control.submit([approval('a')])
  expect((await client('pause', graph_id, '--why', 'w')).data).toMatchObject({ graph_id, paused: true, why: 'w' })
  expect((await client('graphs', '--paused')).data).toMatchObject({ graphs: [{ graph_id, pause: { why: 'w' } }] })
  expect((await client('resume', graph_id)).data).toEqual({ graph_id, paused: false })
  expect((await client('pause', '--type', 'shell')).data).toMatchObject({ type: 'os.shell', paused: true })
  expect((await client('pauses')).data).toMatchObject({ pauses: [{ type: 'os.shell' }] })
  expect((await client('resume', '--type', 'shell')).data).toEqual({ type: 'os.shell', paused: false })
  expect((await client('pause', graph_id, '--type', 'shell')).error?.message).toContain('either a graph or a type')
  const mill = new Taskmill({ url: control.url })
  expect(await mill.pauseGraph(graph_id, { why: 'p' })).toMatchObject({ paused: true, why: 'p' })
  expect(await Array.fromAsync(mill.graphs({ paused: true }))).toMatchObject([{ graph_id, pause: { why: 'p' } }])
  expect(await mill.resumeGraph(graph_id)).toEqual({ graph_id, paused: false })
  expect(await mill.pause({ why: 'p' })).toMatchObject({ paused: true })
  expect(await mill.pauses()).toMatchObject([{ why: 'p' }])
  expect(await mill.resume()).toEqual({ paused: false })
  await using mcp = await connectClient(control.url, 'auto', {}, undefined, '/mcp?toolsets=live')
  const tool = async (name: string, input: object) => (await mcp.call(name, { ...input })).data
  expect(await tool('pause', { graph_id, why: 'm' })).toMatchObject({ graph_id, paused: true, why: 'm' })
  expect(await tool('resume', { graph_id })).toMatchObject({ paused: false })
  expect(await tool('pause', { type: 'noop' })).toMatchObject({ type: 'os.noop', paused: true })
  expect(await tool('resume', { type: 'noop' })).toMatchObject({ paused: false })
  expect((await mcp.call('pause', { graph_id, type: 'noop' })).text).toContain('name either graph_id or type')
})

test('a token pauses what it may cancel, and with operate the service; its name is kept', async () => {
  using tokens = tokensFile({
    agent: { rights: ['read', 'submit', 'cancel_own'] },
    other: { rights: ['read', 'submit', 'cancel_own'] },
    ops: { rights: ['read', 'operate'] },
  })
  await using control = await startControl({ flags: ['--tokens-file', tokens.path], env: { SERVICE_TOKEN: 'sesame' } })
  const as = (name: string, path: string, body: unknown = {}) => call(control, path, body, tokens.as(name))
  const { graph_id } = (await (await as('agent', '/tasks', { tasks: [approval('a')] })).json()) as { graph_id: string }
  expect(await (await as('agent', `/graphs/${graph_id}/pause`)).json()).toMatchObject({ by: 'agent' })
  for (const verb of ['pause', 'resume']) {
    expect((await as('other', `/graphs/${graph_id}/${verb}`)).status).toBe(403)
    expect((await as('ops', `/graphs/${graph_id}/${verb}`)).status).toBe(403)
    expect((await as('agent', `/${verb}`)).status).toBe(403)
    for (const [name, input] of [
      ['agent', {}],
      ['other', { graph_id }],
      ['ops', { graph_id }],
    ] as const) {
      await using mcp = await connectClient(control.url, 'auto', tokens.as(name), undefined, '/mcp?toolsets=live')
      expect((await mcp.call(verb, input)).isError).toBe(true)
    }
  }
  expect(await (await as('ops', '/pause', { why: 'w' })).json()).toMatchObject({ by: 'ops', why: 'w' })
  expect((await as('agent', `/graphs/${graph_id}/resume`)).status).toBe(200)
})

/** Goal: a program does all that the service can do with graphs and tasks. Method: the client against real services. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Taskmill } from '../../client/client.ts'
import type { TaskmillError } from '../../client/errors.ts'
import { lossyProxy } from '../support/lossy-proxy.ts'
import { startMill } from '../support/mill.ts'

const noop = (id: string, more: object = {}) => ({ id, type: 'noop', ...more })
const sleep = (id: string, ms = 600_000) => ({ id, type: 'sleep', params: { duration_ms: ms } })

/** For tests that look at their own graphs only. */
let mill: Awaited<ReturnType<typeof startMill>>
beforeAll(async () => {
  mill = await startMill()
})
afterAll(() => mill[Symbol.asyncDispose]())

/** The error of a call that must fail. */
const failureOf = (call: Promise<unknown>): Promise<TaskmillError> =>
  call.then(
    () => {
      throw new Error('the call did not fail')
    },
    (error) => error,
  )

describe('graphs', () => {
  test('are submitted, waited for, read, and removed', async () => {
    const { client } = mill
    const graph = {
      scope: 'graph',
      name: 'chain',
      tasks: [noop('a', { params: { message: 'hi' } }), noop('b', { depends_on: ['a'] })],
    } as const
    const submitted = await client.submit(graph)
    expect(submitted).toMatchObject({ accepted: 2, task_ids: ['a', 'b'] })
    const ended = await client.wait(submitted)
    expect(ended).toMatchObject({ state: 'success', name: 'chain', counts: { success: 2 } })
    const record = await client.getTask({ graph_id: submitted.graph_id, id: 'a' })
    expect(record.result).toEqual({ ok: true, message: 'hi' })
    expect(await client.getTask(record)).toEqual(record)
    expect((await client.getGraph(record)).edges).toEqual([['a', 'b']])
    await client.deleteGraph(submitted)
    expect(await failureOf(client.getGraph(submitted))).toMatchObject({ code: 'not_found', status: 404 })
  })

  test('whose tasks fail are no errors', async () => {
    const tasks = [
      { id: 'a', type: 'shell', params: { command: 'cat', args: ['/nothing'] } },
      noop('b', { depends_on: ['a'] }),
    ]
    const ended = await mill.client.run({ scope: 'graph', tasks })
    expect(ended).toMatchObject({ state: 'failed', counts: { failed: 1, skipped: 1 }, root_cause: { task_id: 'a' } })
  })

  test('are not run if they are certain to fail, unless that is meant or forced', async () => {
    await using mill = await startMill()
    const { client } = mill
    const doomed = (more: object = {}) => ({
      scope: 'graph' as const,
      tasks: [{ id: 'a', type: 'shell', params: { command: 'rm' }, ...more }],
    })
    const refused = await failureOf(client.run(doomed()))
    expect(refused).toMatchObject({ code: 'invalid', status: 0, wasSent: false })
    expect(refused.message).toMatch(/^nothing was submitted, .*: task a: .*rm.*: correct it, or pass force: true$/)
    expect(await Array.fromAsync(client.graphs())).toEqual([])
    expect((await client.run(doomed(), { force: true })).state).toBe('failed')
    for (const expected of ['failed', 'skipped'])
      expect((await client.run(doomed({ annotations: { expect: expected } }))).state).toBe('failed')
    expect((await client.run(doomed({ continue_on_error: true }))).state).toBe('success')
  })

  test('submit can wait, and a dry run stores nothing', async () => {
    const { client } = mill
    const answer = await client.submit({ tasks: [noop('a')] }, { waitMs: 30_000 })
    expect(answer).toMatchObject({ all_terminal: true, tasks: [{ id: 'a', status: 'success' }] })
    expect((await client.waitTask('a')).status).toBe('success')
    const bad = await client.dryRun({ tasks: [noop('x', { depends_on: ['y', 'x'] })] })
    expect(bad.valid).toBe(false)
    expect(bad.errors.length).toBe(2)
    expect(await failureOf(client.getTask('x'))).toMatchObject({ code: 'not_found' })
    const refused = await failureOf(client.submit({ tasks: [noop('x', { depends_on: ['y'] })] }))
    expect(refused).toMatchObject({ code: 'invalid', status: 400, wasSent: true })
    expect(refused.message).toBe('POST /tasks answered 400: task x depends on unknown task y')
    expect(refused.traceId).toMatch(/^[0-9a-f]{16}$/)
  })

  test('are cancelled, and run again', async () => {
    const { client } = mill
    const first = await client.submit({
      scope: 'graph',
      params: { ms: 600_000 },
      tasks: [noop('a'), { id: 'b', type: 'sleep', params: { duration_ms: { $param: 'ms' } } }],
    })
    await client.waitTask({ ...first, id: 'a' })
    expect((await client.cancelGraph(first)).tasks.map(({ task_id }) => task_id)).toEqual(['b'])
    expect((await client.wait(first)).state).toBe('cancelled')
    const again = await client.rerun(first, { params: { ms: 0 }, idempotencyKey: 'again' })
    expect(again.reused).toEqual(['a'])
    expect((await client.rerun(first, { params: { ms: 0 }, idempotencyKey: 'again' })).graph_id).toBe(again.graph_id)
    expect((await client.wait(again)).state).toBe('success')
    const all = await client.rerun(again, { from: ['a'] })
    expect(all.reused).toEqual(['b'])
  })
})

describe('tasks', () => {
  test('are cancelled and deleted, whatever their names', async () => {
    const { client } = mill
    for (const id of ['a/b', '__proto__', 'ü €?#&=%2F', ' ']) {
      const submitted = await client.submit({ scope: 'graph', tasks: [sleep(id)] })
      const task = { graph_id: submitted.graph_id, id }
      expect((await client.cancelTask(task)).tasks[0]?.task_id).toBe(id)
      expect((await client.waitTask(task)).status).toBe('cancelled')
      await client.deleteTask(task)
      expect(await failureOf(client.deleteTask(task))).toMatchObject({ code: 'not_found' })
    }
  })

  test.each(['', '.', '..', '\ud800'])('the id %j is no part of an address', async (id) => {
    const client = new Taskmill({ url: 'http://127.0.0.1:1' })
    expect(() => client.getTask(id)).toThrow(TypeError)
    expect(() => client.getGraph(id)).toThrow(TypeError)
    expect(() => client.getTask({ graph_id: 'g', id })).toThrow(TypeError)
  })

  test('are approved and rejected', async () => {
    const { client } = mill
    const tasks = [
      { id: 'yes', type: 'approval', params: { message: 'go?' } },
      { id: 'no', type: 'approval', params: { message: 'stop?' } },
    ]
    const graph = await client.submit({ scope: 'graph', tasks })
    const approved = await client.approve({ ...graph, id: 'yes' }, { who: 'ada', why: 'it is sound' })
    expect(approved).toMatchObject({ status: 'success', result: { approved: true, who: 'ada' } })
    const rejected = await client.reject({ ...graph, id: 'no' }, { who: 'ada' })
    expect(rejected).toMatchObject({ status: 'failed', error: 'rejected by ada' })
    expect(await failureOf(client.approve({ ...graph, id: 'no' }, { who: 'ada' }))).toMatchObject({ code: 'conflict' })
  })
})

describe('lists', () => {
  test('are read page by page, as far as they are wanted', async () => {
    await using mill = await startMill()
    await using proxy = await lossyProxy(mill.url)
    const client = new Taskmill({ url: proxy.url, token: mill.token })
    const tasks = Array.from({ length: 25 }, (_, i) => noop(`t${i}`))
    const graph = await client.submit({ tasks, name: 'many', labels: { team: 'web' } }, { waitMs: 30_000 })
    await client.submit(
      { scope: 'graph', tasks: [{ id: 'bad', type: 'shell', params: { command: 'false' } }] },
      { waitMs: 30_000 },
    )
    const ids = (await Array.fromAsync(client.tasks({ pageSize: 10 }))).map(({ id }) => id)
    expect(ids).toEqual(tasks.map(({ id }) => id))
    expect(proxy.requests.filter((request) => request.startsWith('GET /tasks')).length).toBe(3)
    expect(await Array.fromAsync(client.tasks({ status: ['failed', 'skipped'] }))).toEqual([])
    expect((await Array.fromAsync(client.graphTasks(graph, { type: 'noop' }))).length).toBe(25)
    expect((await Array.fromAsync(client.graphs({ state: 'failed' }))).map(({ counts }) => counts)).toEqual([
      { failed: 1 },
    ])
    const named = { name: 'many', labels: { team: 'web' }, since: new Date(0), until: new Date(Date.now() + 60_000) }
    expect((await Array.fromAsync(client.graphs(named))).map(({ graph_id }) => graph_id)).toEqual([graph.graph_id])
    expect(await Array.fromAsync(client.graphs({ tenant: 'acme' }))).toEqual([])
    const before = proxy.requests.length
    for await (const _ of client.tasks({ pageSize: 10 })) break
    expect(proxy.requests.length).toBe(before + 1)
    expect(await failureOf(Array.fromAsync(client.tasks({ pageSize: 0 })))).toMatchObject({ code: 'invalid' })
  })
})

describe('logs', () => {
  test('are read whole, from their end, and up to a limit', async () => {
    const { client } = mill
    writeFileSync(join(mill.directory, 'lines'), 'one\ntwo\nthree ü\n')
    const graph = await client.submit({
      scope: 'graph',
      tasks: [{ id: 'a', type: 'shell', params: { command: 'cat', args: ['lines'] } }],
    })
    const task = { ...graph, id: 'a' }
    await client.waitTask(task)
    expect(await client.log(task)).toMatchObject({
      text: 'one\ntwo\nthree ü\n',
      attempt: 1,
      offset: 0,
      truncated: false,
    })
    expect(await client.log(task, { tail: 1 })).toMatchObject({ text: 'three ü\n', offset: 8 })
    expect(await client.log(task, { maxBytes: 3 })).toMatchObject({ text: 'one', truncated: true })
    expect((await client.log(task, { stream: 'stderr' })).text).toBe('')
    expect(await failureOf(client.log({ ...graph, id: 'none' }))).toMatchObject({ code: 'not_found' })
  })

  test('are followed over a restart of the service, attempt by attempt', async () => {
    await using mill = await startMill({ env: { SERVICE_SHELL_POLICY: 'open' } })
    const { client } = mill
    const script = 'printf "begin "; printf "\\303"; while [ ! -e go ]; do sleep 0.01; done; printf "\\274 end\\n"'
    const graph = await client.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'shell', params: { script } }] })
    const texts = new Map<number, string>()
    let hasRestarted = false
    for await (const { attempt, offset, bytes, text } of client.followLog({ ...graph, id: 'a' })) {
      expect(Buffer.byteLength(texts.get(attempt) ?? '')).toBeLessThanOrEqual(offset)
      texts.set(attempt, (texts.get(attempt) ?? '') + text)
      expect(bytes.length).toBeGreaterThan(0)
      if (hasRestarted) continue
      hasRestarted = true
      await mill.restart()
      writeFileSync(join(mill.directory, 'go'), '')
    }
    expect([...texts.keys()]).toEqual([1, 2])
    expect(texts.get(1)).toStartWith('begin ')
    expect(texts.get(2)).toBe('begin ü end\n')
    const rest = await Array.fromAsync(client.followLog({ ...graph, id: 'a' }, { from: { attempt: 2, offset: 6 } }))
    expect(rest.map(({ text }) => text).join('')).toBe('ü end\n')
  })
})

test('a runtime task is followed too', async () => {
  await using mill = await startMill({ runtime: true })
  const { client } = mill
  const params = { script: 'echo out; echo err >&2; exit 3' }
  const graph = await client.submit({ scope: 'graph', tasks: [{ id: 'a', type: 'runtime.script', params }] })
  const chunks = await Array.fromAsync(client.followLog({ ...graph, id: 'a' }, { stream: 'stderr' }))
  expect(chunks.map(({ text }) => text).join('')).toBe('err\n')
  expect(await client.getTask({ ...graph, id: 'a' })).toMatchObject({
    status: 'failed',
    runtime: { error: { code: 'exit_nonzero' } },
  })
})

test('the address and the token come from the environment', async () => {
  const script = `import { Taskmill } from ${JSON.stringify(join(import.meta.dir, '../../client/client.ts'))}
    console.log((await new Taskmill().submit({ tasks: [{ id: 'env', type: 'noop' }] })).accepted)`
  const env = { PATH: process.env.PATH ?? '', SERVICE_URL: `${mill.url}/`, SERVICE_TOKEN: mill.token }
  const child = Bun.spawn([process.execPath, '-e', script], { env, stdout: 'pipe', stderr: 'inherit' })
  expect(await new Response(child.stdout).text()).toBe('1\n')
  const refused = await failureOf(new Taskmill({ url: mill.url, token: '' }).getTask('a'))
  expect(refused).toMatchObject({ code: 'unauthenticated', status: 401 })
  expect(refused.message).toContain('pass a token')
  expect(readFileSync('/proc/self/environ', 'latin1')).not.toContain(mill.token)
})

/**
 * Several runtime services: where tasks run, what they wait for, and that no attempt starts twice whatever dies. A task
 * notes each of its runs in a file. Source: docs/cluster.md.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { lossyLink } from '../support/lossy-link.ts'
import { startPool } from '../support/runtime-pool.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const ids = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`)
const TWO = { a: { labels: 'zone=a' }, b: { labels: 'zone=b,gpu' } }

describe('a placement', () => {
  test('by name or by labels decides where a task runs, and the record says where that was', async () => {
    await using pool = await startPool(TWO)
    await pool.open()
    const placements = {
      named: { runtime: 'a' },
      labelled: { labels: { gpu: '', zone: 'b' } },
      anywhere: undefined,
      empty: { labels: {} },
    }
    const tasks = Object.entries(placements).map(([id, placement]) => pool.gated(id, { placement }))
    await pool.control.submit(tasks)
    const placed = Object.fromEntries((await pool.control.allEnded()).map(({ id, placed_on }) => [id, placed_on]))
    expect(placed).toMatchObject({ named: 'a', labelled: 'b' })
    expect(['a', 'b']).toContain(placed.anywhere!)
    expect(['a', 'b']).toContain(placed.empty!)
    for (const { task_id } of await pool.runtime('a').list()) expect(task_id).not.toStartWith('labelled')
  })

  test('that no runtime service fits waits and says why; its logs and files are read from its own', async () => {
    await using pool = await startPool(TWO)
    await pool.control.submit([
      pool.gated('strange', { placement: { labels: { gpu: '', zone: 'a' } } }),
      pool.gated('unknown', { placement: { runtime: 'gpu-9' } }),
      pool.gated('held', { placement: { runtime: 'b' } }),
    ])
    expect(await pool.waits('strange', (detail) => detail !== '')).toBe('no runtime has labels gpu, zone=a')
    expect(await pool.waits('unknown', (detail) => detail !== '')).toBe('no runtime is named gpu-9')
    expect(await pool.running('held')).toBe('b')
    expect((await pool.control.get('strange')).placed_on).toBeUndefined()
    const log = await pool.control.fetch('/tasks/held/logs')
    expect([log.status, await log.text()]).toEqual([200, '\n'])
    for (const id of ['strange', 'unknown']) {
      expect((await pool.control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })).status).toBe(202)
      expect((await pool.control.ended(id)).status).toBe('cancelled')
    }
    await pool.open()
    expect((await pool.control.ended('held')).status).toBe('success')
    expect(pool.lines('ran')).toEqual(['held'])
  })

  test.each([
    ['gpu-1', 'placement: expected object with runtime or labels'],
    [{ runtime: '' }, 'placement.runtime: expected the name of a runtime service (1 to 63 letters'],
    [{ runtime: '__proto__' }, 'placement.runtime: expected the name of a runtime service'],
    [{ runtime: 'a', labels: {} }, 'placement: runtime and labels exclude each other'],
    [{ labels: ['gpu'] }, 'placement.labels: expected object of strings'],
    [{ labels: { gpu: 1 } }, 'placement.labels.gpu: expected string'],
    [{ labels: { 'a b': '' } }, 'placement.labels: expected names of 1 to 63 letters'],
    [{ labels: { gpu: 'a,b' } }, 'placement.labels.gpu: expected at most 63 characters'],
    [{ label: { gpu: '' } }, 'unknown field "placement.label" in task t (did you mean "placement.labels"?)'],
  ])('%j is refused at submission and in a dry run', async (placement, fault) => {
    await using control = await startControl()
    const graph = { tasks: [{ id: 't', type: 'runtime.script', params: { script: 'true', placement } }] }
    const refused = await control.post(graph)
    expect(refused.status).toBe(400)
    expect(((await refused.json()) as { error: string }).error).toContain(fault)
    const checked = await control.fetch('/tasks?dry_run=true', { method: 'POST', body: JSON.stringify(graph) })
    const { valid, errors } = (await checked.json()) as { valid: boolean; errors: { message: string }[] }
    expect([valid, errors[0]!.message]).toEqual([false, expect.stringContaining(fault)])
    expect(await control.list()).toEqual([])
  })

  test('may come from parameters, and is kept in a rerun', async () => {
    await using pool = await startPool(TWO)
    const task = {
      id: 't',
      type: 'runtime.script',
      params: { script: 'exit 3', placement: { runtime: { $param: 'where' } } },
    }
    const body = JSON.stringify({ params: { where: 'b' }, tasks: [task] })
    const { graph_id } = (await (await pool.control.post(body)).json()) as { graph_id: string }
    expect(await pool.control.ended('t')).toMatchObject({ status: 'failed', placed_on: 'b' })
    const answer = await pool.control.fetch(`/graphs/${graph_id}/rerun`, {
      method: 'POST',
      body: JSON.stringify({ params: { where: 'a' } }),
    })
    expect(answer.status).toBe(202)
    expect(await pool.control.ended('t')).toMatchObject({ status: 'failed', placed_on: 'a' })
  })
})

describe('a runtime service', () => {
  test('with more left gets the tasks, and one that is full passes them on, in the same attempt', async () => {
    const small = { flags: ['--max-running-tasks', '1', '--max-queued-tasks', '0'] }
    await using pool = await startPool({ small, large: { flags: ['--max-running-tasks', '8'] } }, [
      '--max-concurrency',
      '20',
    ])
    await pool.control.fetch('/runtimes') // looks at both: one that answers late gets no tasks
    await pool.control.submit(ids(9).map((id) => pool.gated(id)))
    await until(() => pool.lines('ran').length, 9)
    const places = (await pool.control.list()).map(({ placed_on, attempt }) => [placed_on, attempt])
    expect(places.filter(([name]) => name === 'small')).toEqual([['small', 1]])
    expect(places.filter(([name]) => name === 'large')).toHaveLength(8)
    // Both are full, or have a queue: a task that only the small one fits is refused.
    const failed = await pool.control.run({
      type: 'runtime.script',
      params: { script: 'true', placement: { runtime: 'small' } },
    })
    expect(failed.error).toStartWith('runtime small: ')
    expect(failed.runtime?.error).toMatchObject({ code: 'resource_limit_exceeded', retryable: true })
    await pool.open()
    for (const { status } of await pool.control.allEnded()) expect(['success', 'failed']).toContain(status)
    expect(pool.lines('ran').toSorted()).toEqual(ids(9))
  })

  test('that is away gets none; tasks for it alone wait until it is back', async () => {
    await using pool = await startPool(TWO)
    await pool.killRuntime('a')
    await pool.open()
    await pool.control.submit([
      ...ids(6).map((id) => pool.gated(id)),
      pool.gated('only', { placement: { runtime: 'a' } }),
    ])
    for (const id of ids(6)) expect(await pool.control.ended(id)).toMatchObject({ status: 'success', placed_on: 'b' })
    const detail = await pool.waits('only', (text) => text.includes('refused')) // a kept connection may break first
    expect(detail).toMatch(/^runtime a is away since \d{4}-\S+Z \(connection refused\)$/)
    await pool.startRuntime('a')
    expect(await pool.control.ended('only')).toMatchObject({ status: 'success', placed_on: 'a', attempt: 1 })
  })

  test('that stays away fails the tasks that wait for it, after --runtime-away-timeout', async () => {
    await using pool = await startPool(TWO, ['--runtime-away-timeout', '300ms'])
    await pool.killRuntime('a')
    const failed = await pool.control.run({
      type: 'runtime.script',
      params: { script: 'true', placement: { runtime: 'a' } },
    })
    expect(failed.error).toStartWith(
      'lost touch with the runtime service for 300ms: cannot reach the runtime service at ',
    )
    expect(failed.runtime?.error).toMatchObject({ code: 'external_failure', retryable: true })
  })

  test('that is none: the error of the queue_timeout says what the task waited for, and the timeout does not count', async () => {
    await using pool = await startPool(TWO)
    const params = { script: 'true', placement: { runtime: 'gpu-9' } }
    const bounds = { timeout: 10, queue_timeout: 1_000 }
    const { error, runtime } = await pool.control.run({ type: 'runtime.script', ...bounds, params })
    expect(error).toBe('task waited longer than queue_timeout')
    const details = { waiting: 'no runtime is named gpu-9' }
    expect(runtime?.error).toMatchObject({ code: 'timeout', retryable: true, details })
    const slow = { script: 'sleep 60' }
    const late = await pool.control.run({ type: 'runtime.script', timeout: 1_000, params: slow })
    expect(late.error).toBe('task timed out after 1000ms')
  })

  test('that dies keeps its tasks, and its queue is told by its name', async () => {
    const flags = ['--capacity-memory-bytes', String(2 ** 30)]
    await using pool = await startPool({ a: { flags }, b: { flags } })
    const large = { limits: { memory_bytes: 600 * 2 ** 20 }, placement: { runtime: 'a' } }
    await pool.control.submit([pool.gated('first', large)])
    await pool.running('first')
    await pool.control.submit([pool.gated('second', large)])
    expect(await pool.waits('second', (text) => text !== '')).toBe('runtime a: waiting for memory_bytes')
    await pool.killRuntime('a')
    await pool.waits('first', (text) => text.startsWith('runtime a is away since '))
    await pool.killControl()
    await pool.startControl()
    await pool.waits('first', (text) => text.startsWith('runtime a is away since '))
    await pool.open()
    await pool.startRuntime('a')
    for (const id of ['first', 'second']) {
      expect(await pool.control.ended(id)).toMatchObject({ status: 'success', placed_on: 'a', attempt: 1 })
    }
    expect(pool.lines('ran').toSorted()).toEqual(['first', 'second'])
    expect(await pool.runtime('b').list()).toEqual([])
  })
})

test('a kill of control in the middle, and of a runtime service: no attempt starts twice, none is lost', async () => {
  await using pool = await startPool({ a: {}, b: {}, c: {} }, ['--max-concurrency', '40'])
  const all = ids(30)
  await pool.control.fetch('/runtimes') // looks at all: one that answers late gets no tasks
  await pool.control.submit(all.map((id) => pool.gated(id)))
  await until(
    () => pool.lines('ran').length,
    (count) => count >= 6,
  )
  await pool.killControl()
  await pool.killRuntime('b')
  await pool.startControl(['--max-concurrency', '40'])
  await pool.open()
  await pool.startRuntime('b')
  const ended = await pool.control.allEnded()
  expect(ended.map(({ status }) => status)).toEqual(all.map(() => 'success'))
  expect(new Set(ended.map(({ placed_on }) => placed_on))).toEqual(new Set(['a', 'b', 'c']))
  const attempts = ended.map(({ attempt }) => attempt!)
  const runs = pool.lines('ran')
  expect(runs.length).toBe(new Set(runs).size)
  expect(Math.max(...attempts)).toBeLessThanOrEqual(2) // an attempt that had no place yet was interrupted
  for (const name of ['a', 'b', 'c']) {
    const { active_reservations } = await pool.runtime(name).resources()
    expect(active_reservations).toEqual([])
  }
})

test('a cancel reaches the runtime service of the task, also after a restart', async () => {
  await using pool = await startPool(TWO)
  await pool.control.submit(['a', 'b'].map((runtime) => pool.gated(`on-${runtime}`, { placement: { runtime } })))
  for (const name of ['a', 'b']) expect(await pool.running(`on-${name}`)).toBe(name)
  await pool.killControl()
  await pool.startControl()
  for (const name of ['a', 'b']) {
    await pool.control.reached(`on-${name}`, 'running')
    await pool.control.fetch(`/tasks/on-${name}/cancel`, { method: 'POST' })
    const { handle_id, status } = await pool.control.ended(`on-${name}`)
    expect(status).toBe('cancelled')
    expect((await pool.runtime(name).ended(handle_id!)).status).toBe('cancelled')
    expect((await pool.control.fetch(`/tasks/on-${name}`, { method: 'DELETE' })).status).toBe(204)
    await until(async () => (await pool.runtime(name).fetch(`/api/v1/tasks/${handle_id}`)).status, 404)
  }
})

test('an attempt that may have arrived stays, and goes to another only after two answers that it is not there', async () => {
  await using pool = await startPool({ a: { flags: ['--max-running-tasks', '1', '--max-queued-tasks', '0'] }, b: {} })
  await using link = lossyLink(() => pool.urlOf('a'))
  await using control = await startControl({
    flags: ['--runtime-url', `a=${link.url}`, '--runtime-url', `b=${pool.urlOf('b')},late`],
  })
  // Its submission is held before it arrives, and then lost; the other one says nothing of it.
  const submission = 'POST /api/v1/tasks'
  const release = link.hold((request) => request === submission)
  await pool.killRuntime('b', 'SIGTERM')
  await control.submit([pool.gated('t')])
  await until(
    () => link.requests,
    (requests) => requests.includes(submission),
  )
  const held = await control.get('t')
  expect(held).toMatchObject({ placed_on: 'a', attempt: 1 })
  await pool.runtime('a').submit({ execution: { kind: 'command', program: '/bin/sleep', args: ['600'] } })
  await pool.startRuntime('b')
  expect((await control.get('t')).placed_on).toBe('a')
  release() // it arrives, and is refused: the place is taken
  await pool.open()
  expect(await control.ended('t')).toMatchObject({ status: 'success', attempt: 1, placed_on: 'b' })
  expect(pool.lines('ran')).toEqual(['t'])
})

test('a submission that comes after the next one was refused does not run beside the attempt elsewhere', async () => {
  await using pool = await startPool({ a: { flags: ['--max-running-tasks', '1', '--max-queued-tasks', '0'] }, b: {} })
  const first = Promise.withResolvers<void>()
  const second = Promise.withResolvers<void>()
  const late = Promise.withResolvers<number>()
  let submissions = 0
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = request.method === 'POST' ? await request.text() : undefined
      const { method, headers } = request
      const passOn = () => fetch(pool.urlOf('a') + pathname + search, { method, headers, ...(body && { body }) })
      if (pathname !== '/api/v1/tasks') return passOn()
      submissions++
      if (submissions > 1) return second.promise.then(passOn)
      void first.promise.then(passOn).then(({ status }) => late.resolve(status))
      return new Response('upstream reset', { status: 503 })
    },
  })
  await using _proxy = { [Symbol.asyncDispose]: () => proxy.stop(true) }
  await using control = await startControl({
    flags: ['--runtime-url', `a=http://127.0.0.1:${proxy.port}`, '--runtime-url', `b=${pool.urlOf('b')}`],
  })
  await pool.killRuntime('b', 'SIGTERM')
  await control.submit([pool.gated('t')])
  await until(
    () => submissions,
    (count) => count > 1,
  )
  const a = pool.runtime('a')
  const other = await a.submit({ execution: { kind: 'command', program: '/bin/sleep', args: ['600'] } })
  await pool.startRuntime('b')
  second.resolve() // it is refused: the place is taken
  await until(() => pool.lines('ran'), ['t'])
  expect((await control.get('t')).placed_on).toBe('b')
  await a.kill(other)
  await a.ended(other)
  first.resolve()
  expect(await late.promise).toBe(409)
  await pool.open()
  expect(await control.ended('t')).toMatchObject({ status: 'success', attempt: 1, placed_on: 'b' })
  expect(pool.lines('ran')).toEqual(['t'])
})

test('handles of an earlier version belong to the runtime service without a name', async () => {
  await using pool = await startPool({ default: {}, other: {} })
  await pool.control.submit([pool.gated('t', { placement: { runtime: 'default' } })])
  expect(await pool.running('t')).toBe('default')
  await pool.killControl('SIGTERM')
  const path = pool.file('control/state.json')
  const state = (await Bun.file(path).json()) as { t: { placed_on?: string } }
  expect(state.t.placed_on).toBe('default')
  delete state.t.placed_on
  await Bun.write(path, JSON.stringify(state))
  await pool.startControl()
  await pool.control.reached('t', 'running')
  await pool.open()
  expect(await pool.control.ended('t')).toMatchObject({ status: 'success', attempt: 1 })
  expect(pool.lines('ran')).toEqual(['t'])
})

test.each([
  [['gpu!=http://127.0.0.1:1'], 'expected a name of 1 to 63 letters'],
  [['gpu-1=127.0.0.1:1'], 'expected an http: or https: address without query'],
  [['a=http://127.0.0.1:1', 'a=http://127.0.0.1:2'], 'two are called a'],
  [['http://127.0.0.1:1', 'http://127.0.0.1:2'], 'two are called default'],
  [['a=http://127.0.0.1:1,http://127.0.0.1:2'], 'repeat the flag for another runtime service'],
])('--runtime-url %j does not start', async (urls, fault) => {
  const flags = urls.flatMap((url) => ['--runtime-url', url])
  const started = startControl({ flags: [...flags, '--addr', `127.0.0.1:${await freePort()}`] })
  expect(await started.then(String, (error) => String(error))).toContain(fault)
})

test('the variable has several, with spaces between them', async () => {
  await using control = await startControl({
    env: { SERVICE_RUNTIME_URL: 'a=http://127.0.0.1:1,gpu  http://127.0.0.1:2' },
  })
  const { runtimes } = (await (await control.fetch('/runtime')).json()) as {
    runtimes: { name: string; labels: object; state: string }[]
  }
  expect(runtimes).toMatchObject([
    { name: 'a', labels: { gpu: '' }, state: 'away' },
    { name: 'default', labels: {}, state: 'away' },
  ])
})

describe('inputs', () => {
  const make = (runtime: string) => ({
    id: `made-on-${runtime}`,
    type: 'runtime.script',
    params: { script: `echo ${runtime} > file`, placement: { runtime } },
  })
  const use = (id: string, sources: readonly string[], more: object = {}) => ({
    id,
    type: 'runtime.script',
    depends_on: sources.map((runtime) => `made-on-${runtime}`),
    params: {
      script: 'cat in-*',
      inputs: Object.fromEntries(sources.map((at) => [`in-${at}`, { $from: `made-on-${at}`, file: 'file' }])),
      ...more,
    },
  })

  test('bring a task to the runtime service that has them, also in a rerun', async () => {
    await using pool = await startPool({ a: {}, b: {}, c: { labels: 'gpu' } })
    const tasks = ['a', 'b', 'c'].flatMap((name) => [make(name), ...ids(3).map((id) => use(`${id}-${name}`, [name]))])
    const last = use('last', ['c'], { script: 'cat in-c; test -e in-never' })
    const { graph_id } = await pool.control.submit([...tasks, last])
    for (const task of await pool.control.allEnded()) {
      const source = task.id.at(-1)!
      if (task.id === 'last') expect(task).toMatchObject({ status: 'failed', placed_on: 'c' })
      else expect(task).toMatchObject({ status: 'success', placed_on: source })
      if (/^t\d-/.test(task.id)) expect(task.result).toMatchObject({ stdout: `${source}\n`, placed_on: source })
    }
    expect((await pool.control.get('t0-b')).resolved_input).toMatchObject({ inputs: { 'in-b': { runtime: 'b' } } })
    await pool.killControl()
    await pool.startControl()
    const rerun = await pool.control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST' })
    expect(rerun.status).toBe(202)
    expect(await pool.control.ended('last')).toMatchObject({
      status: 'failed',
      placed_on: 'c',
      result: { stdout: 'c\n' },
    })
  })

  test('wait for the runtime service that has them, and fail once that is lost', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    await pool.control.submit([make('a'), use('after', ['a']), pool.gated('gate', { placement: { runtime: 'b' } })])
    await pool.control.ended('after')
    const gate = { id: 'gate2', type: 'approval' }
    const later = use('later', ['a'], { placement: { runtime: 'a' } })
    const { graph_id } = await pool.control.submit([
      make('a'),
      gate,
      { ...later, depends_on: [...later.depends_on, 'gate2'] },
    ])
    await pool.control.ended('made-on-a')
    expect((await pool.control.fetch('/runtimes/a/drain', { method: 'POST' })).status).toBe(200)
    const answer = { method: 'POST', body: JSON.stringify({ who: 'test' }) }
    await until(async () => (await pool.control.fetch('/tasks/gate2/approve', answer)).status, 200)
    expect(await pool.waits('later', (text) => text !== '')).toBe('runtime a is draining')
    expect((await pool.control.fetch('/runtimes/a?lost=true', { method: 'DELETE' })).status).toBe(200)
    expect(await pool.waits('later', (text) => text.startsWith('no runtime'))).toBe('no runtime is named a')
    expect((await pool.control.fetch('/tasks/later/cancel', { method: 'POST' })).status).toBe(202)
    await pool.control.ended('later')
    const again = await pool.control.fetch(`/graphs/${graph_id}/rerun`, { method: 'POST', body: '{"from":["later"]}' })
    expect(again.status).toBe(202)
    expect(await pool.control.ended('later')).toMatchObject({
      status: 'failed',
      error: 'inputs.in-a is on runtime a, which was removed: run the task that made it again',
    })
    await pool.open()
  })
})

test('a proxy that answers 503 after it has sent the task on does not make it run twice', async () => {
  const flags = ['--max-running-tasks', '6'] // room for all tasks at one of them
  await using pool = await startPool({ a: { flags }, b: { flags } })
  let isLosing = true
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = request.method === 'POST' ? await request.text() : undefined
      const answer = await fetch(pool.urlOf('a') + pathname + search, {
        method: request.method,
        ...(body !== undefined && { body }),
      })
      const isLost = isLosing && request.method === 'POST' && answer.ok
      return isLost ? new Response('upstream reset', { status: 503 }) : answer
    },
  })
  await using _proxy = { [Symbol.asyncDispose]: () => proxy.stop(true) }
  await using control = await startControl({
    flags: ['--runtime-url', `a=http://127.0.0.1:${proxy.port},first`, '--runtime-url', `b=${pool.urlOf('b')}`],
  })
  await control.fetch('/runtimes') // looks at both: one that answers late gets no tasks
  await control.submit(ids(6).map((id) => pool.gated(id)))
  await until(() => new Set(pool.lines('ran')).size, 6)
  isLosing = false
  await pool.open()
  for (const { status, attempt } of await control.allEnded()) expect([status, attempt]).toEqual(['success', 1])
  expect(pool.lines('ran').toSorted()).toEqual(ids(6))
})

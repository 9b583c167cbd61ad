/**
 * The pool of runtime services while control runs: add, drain, remove, lose, register. Source: docs/cluster.md, docs/http.md.
 */
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync } from 'node:fs'
import { builtProgram } from '../../scripts/build.ts'
import { type PooledRuntime, RuntimesResponse } from '../../shared/contract/runtimes.ts'
import { checkedAnswer } from '../support/answer-check.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { freePort } from '../support/free-port.ts'
import { startRuntime } from '../support/runtime.ts'
import { startPool } from '../support/runtime-pool.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

setDefaultTimeout(120_000)

const listed = async (control: Control): Promise<RuntimesResponse['runtimes']> => {
  const response = await control.fetch('/runtimes')
  expect(response.status).toBe(200)
  return checkedAnswer<RuntimesResponse>(RuntimesResponse, await response.json()).runtimes
}
const namesIn = async (control: Control) => (await listed(control)).map(({ name }) => name)

const ask = async (control: Control, method: string, path: string, body?: object) => {
  const response = await control.fetch(path, { method, ...(body && { body: JSON.stringify(body) }) })
  return {
    status: response.status,
    answer: (await response.json()) as PooledRuntime & { error?: string; attempts: number },
  }
}

const GPU = { name: 'gpu-1', url: 'http://127.0.0.1:1', labels: { gpu: '' } }

describe('a change of the pool', () => {
  test('is answered once it is on disk, and outlives a kill of control', async () => {
    using dir = tempDir()
    const flags = ['--runtime-url', 'a=http://127.0.0.1:2', '--runtime-url', 'b=http://127.0.0.1:3']
    const kill = async (control: Control) => {
      await control.stop('SIGKILL')
      await control.dispose()
    }
    const first = await startControl({ dataDir: dir.path, flags })
    expect(await ask(first, 'POST', '/runtimes', GPU)).toMatchObject({
      status: 201,
      answer: { ...GPU, draining: false, configured: false, attempts: 0 },
    })
    expect((await ask(first, 'POST', '/runtimes', GPU)).status).toBe(200)
    expect((await ask(first, 'POST', '/runtimes/a/drain')).answer.draining).toBe(true)
    expect((await ask(first, 'POST', '/runtimes/gpu-1/drain', { why: 'a fan' })).answer.drain?.why).toBe('a fan')
    for (const wrong of [{ why: 1 }, { why: 'x'.repeat(1_001) }, { reason: 'x' }])
      expect((await ask(first, 'POST', '/runtimes/gpu-1/drain', wrong)).status).toBe(400)
    expect((await ask(first, 'DELETE', '/runtimes/b')).status).toBe(200)
    await kill(first)

    const second = await startControl({ dataDir: dir.path, flags })
    const after = (await listed(second)).map(({ name, draining, configured, drain }) => [
      name,
      draining,
      configured,
      drain,
    ])
    const since = expect.any(String)
    expect(after).toEqual([
      ['a', true, true, { since }],
      ['gpu-1', true, false, { since, why: 'a fan' }],
    ])
    expect(second.log.map(({ msg }) => msg)).toContain(
      'a runtime service of --runtime-url was removed: it gets no tasks',
    )
    expect((await ask(second, 'POST', '/runtimes/a/undrain')).answer.draining).toBe(false)
    expect((await ask(second, 'POST', '/runtimes', { name: 'b', url: 'http://127.0.0.1:3/' })).answer).toMatchObject({
      configured: true,
      url: 'http://127.0.0.1:3',
    })
    expect((await ask(second, 'DELETE', '/runtimes/gpu-1')).status).toBe(200)
    await kill(second)

    await using third = await startControl({ dataDir: dir.path, flags })
    expect((await listed(third)).map(({ name, draining }) => [name, draining])).toEqual([
      ['a', false],
      ['b', false],
    ])
  })

  test('that the disk does not take is refused, and undone', async () => {
    if (process.getuid?.() === 0) return // root writes everywhere
    using dir = tempDir()
    await using control = await startControl({ dataDir: dir.path })
    chmodSync(dir.path, 0o500)
    try {
      expect((await ask(control, 'POST', '/runtimes', GPU)).status).toBe(503)
      expect(await namesIn(control)).toEqual(['default'])
    } finally {
      chmodSync(dir.path, 0o700)
    }
  })

  test.each([
    [{ ...GPU, name: '__proto__' }, 'name: expected 1 to 63 letters'],
    [{ ...GPU, name: undefined }, 'name: expected'],
    [{ ...GPU, url: 'ftp://h' }, 'url: expected an http: or https: address'],
    [{ ...GPU, url: 'http://h?' }, 'url: expected an http: or https: address'],
    [{ ...GPU, url: 'unix:/run/other.sock' }, 'url: expected an http: or https: address'],
    [{ ...GPU, url: 'http://ada:secret@h' }, 'url: expected an http: or https: address without user'],
    [{ ...GPU, labels: { 'a b': '' } }, 'labels: expected names of'],
    [{ ...GPU, labels: ['gpu'] }, 'labels: expected object of strings'],
    [{ ...GPU, label: { gpu: '' } }, 'unknown field "label" (did you mean "labels"?)'],
    [[], 'expected object, got array'],
  ])('%j is refused with 400', async (body, fault) => {
    await using control = await startControl()
    const { status, answer } = await ask(control, 'POST', '/runtimes', body)
    expect([status, answer.error]).toEqual([400, expect.stringContaining(fault)])
    expect(await namesIn(control)).toEqual(['default'])
  })

  test('of a runtime service on a Unix socket outlives a restart, and it can be added again', async () => {
    using dir = tempDir()
    const socket = 'unix:/run/no-such/runtime.sock'
    const start = () => startControl({ dataDir: dir.path, flags: ['--runtime-url', `near=${socket}`] })
    const first = await start()
    expect((await ask(first, 'DELETE', '/runtimes/near')).status).toBe(200)
    await first.stop('SIGTERM')
    await first.dispose()
    await using second = await start()
    expect(await namesIn(second)).toEqual([])
    const there = await ask(second, 'POST', '/runtimes', { name: 'near', url: socket })
    expect(there).toMatchObject({ status: 201, answer: { url: socket, configured: true } })
  })

  test('to an address that another name has is refused, however it is written', async () => {
    await using control = await startControl({ flags: ['--runtime-url', 'a=http://127.0.0.1/r'] })
    await ask(control, 'POST', '/runtimes', GPU)
    for (const [name, url, other] of [
      ['gpu-2', 'HTTP://127.0.0.1:1/', 'gpu-1'],
      ['gpu-2', 'http://127.0.0.1:80/r', 'a'],
    ]) {
      const { status, answer } = await ask(control, 'POST', '/runtimes', { name, url })
      expect([status, answer.error]).toEqual([409, expect.stringContaining(`runtime ${other} is at http://127.0.0.1`)])
    }
    expect((await ask(control, 'POST', '/runtimes', GPU)).status).toBe(200)
    expect(await namesIn(control)).toEqual(['a', 'gpu-1'])
  })

  test('of an address is logged, because two runtime services may have one name', async () => {
    await using control = await startControl()
    await ask(control, 'POST', '/runtimes', GPU)
    expect((await ask(control, 'POST', '/runtimes', { ...GPU, url: 'http://127.0.0.1:2' })).status).toBe(200)
    const { level, url, earlier_url } = await until(
      () => control.log.find(({ msg }) => msg === 'a runtime service has another address'),
      (line) => line !== undefined,
    ).then((line) => line!)
    expect([level, url, earlier_url]).toEqual(['warn', 'http://127.0.0.1:2', GPU.url])
  })

  test('needs the token of control, and there are at most so many', async () => {
    await using control = await startControl({ env: { SERVICE_TOKEN: 'sesame' } })
    const body = JSON.stringify(GPU)
    for (const [method, path] of [
      ['GET', '/runtimes'],
      ['POST', '/runtimes'],
      ['POST', '/runtimes/default/drain'],
      ['DELETE', '/runtimes/default?lost=true'],
    ] as const) {
      const init = method === 'POST' && path === '/runtimes' ? { body } : {}
      expect((await control.fetch(path, { method, ...init })).status).toBe(401)
    }
    const authorized = (method: string, path: string, more: object) =>
      control.fetch(path, { method, headers: { authorization: 'Bearer sesame' }, body: JSON.stringify(more) })
    for (let i = 1; i < 256; i++) {
      expect((await authorized('POST', '/runtimes', { name: `r${i}`, url: `http://127.0.0.1:${i}` })).status).toBe(201)
    }
    const refused = await authorized('POST', '/runtimes', { ...GPU, url: 'http://127.0.0.1:256' })
    expect([refused.status, await refused.json()]).toEqual([
      409,
      { error: 'there are 256 runtime services already: remove one first' },
    ])
  })

  test('a damaged runtimes.json stops the start, and is left as it is', async () => {
    using dir = tempDir()
    await Bun.write(`${dir.path}/runtimes.json`, '{"added":[{"name":"../x"}]}')
    const started = await startControl({ dataDir: dir.path }).then(String, (error) => String(error))
    expect(started).toContain(`cannot read ${dir.path}/runtimes.json`)
    expect(await Bun.file(`${dir.path}/runtimes.json`).text()).toBe('{"added":[{"name":"../x"}]}')
  })
})

describe('a runtime service', () => {
  test('that is added gets the tasks that wait for it; one that drains gets none, and finishes what it has', async () => {
    await using pool = await startPool({ a: {} })
    await using b = await startRuntime()
    const { control } = pool
    await control.submit([pool.gated('on-a'), pool.gated('waits', { placement: { labels: { gpu: '' } } })])
    expect(await pool.running('on-a')).toBe('a')
    expect(await pool.waits('waits', (text) => text !== '')).toBe('no runtime has labels gpu')
    const gpu = { name: 'gpu-1', url: b.url, labels: { gpu: '' } }
    expect((await ask(control, 'POST', '/runtimes', gpu)).status).toBe(201)
    expect(await pool.running('waits')).toBe('gpu-1')
    expect((await ask(control, 'POST', '/runtimes/gpu-1/drain')).status).toBe(200)
    await control.submit([
      pool.gated('held', { placement: { runtime: 'gpu-1' } }),
      ...[1, 2, 3].map((i) => pool.gated(`free-${i}`)),
    ])
    for (const i of [1, 2, 3]) expect(await pool.running(`free-${i}`)).toBe('a')
    expect(await pool.waits('held', (text) => text !== '')).toBe('runtime gpu-1 is draining')
    const busy = await ask(control, 'DELETE', '/runtimes/gpu-1')
    expect([busy.status, busy.answer.error]).toEqual([
      409,
      'runtime gpu-1 has 1 attempt: drain it and wait for them, or remove it with lost=true if its machine is gone for good',
    ])
    const moved = await ask(control, 'POST', '/runtimes', { ...gpu, url: 'http://127.0.0.1:1' })
    expect([moved.status, moved.answer.error]).toEqual([409, expect.stringContaining('and has 1 attempt')])
    await pool.open()
    expect((await control.ended('waits')).status).toBe('success')
    expect((await control.get('held')).placed_on).toBeUndefined()
    await ask(control, 'POST', '/runtimes/gpu-1/undrain')
    expect(await control.ended('held')).toMatchObject({ status: 'success', placed_on: 'gpu-1', attempt: 1 })
    expect((await ask(control, 'DELETE', '/runtimes/gpu-1')).answer).toMatchObject({ name: 'gpu-1', attempts: 0 })
    expect(await namesIn(control)).toEqual(['a'])
  })

  test('that nothing has yet holds up no other task, nor the stop of control', async () => {
    await using pool = await startPool({ a: {} }, ['--max-concurrency', '2'])
    await using b = await startRuntime()
    const late = ['w1', 'w2', 'w3', 'w4', 'w5']
    await pool.open()
    await pool.control.submit(late.map((id) => pool.gated(id, { placement: { labels: { gpu: '' } } })))
    for (const id of late) await pool.waits(id, (text) => text === 'no runtime has labels gpu')
    expect(await pool.control.run({ type: 'noop' })).toMatchObject({ status: 'success' })
    expect(await pool.control.run({ type: 'runtime.script', params: { script: 'true' } })).toMatchObject({
      placed_on: 'a',
    })
    const startedAt = performance.now()
    await pool.killControl('SIGTERM')
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    await pool.startControl(['--max-concurrency', '2', '--shutdown-timeout', '30s'])
    for (const id of late) await pool.waits(id, (text) => text === 'no runtime has labels gpu')
    await ask(pool.control, 'POST', '/runtimes', { name: 'gpu-1', url: b.url, labels: { gpu: '' } })
    for (const id of late) expect(await pool.control.ended(id)).toMatchObject({ status: 'success', placed_on: 'gpu-1' })
    expect(pool.lines('ran').toSorted()).toEqual(late)
    await pool.control.submit([pool.gated('never', { placement: { labels: { arm: '' } } })])
    await pool.waits('never', (text) => text === 'no runtime has labels arm')
    const stoppedAt = performance.now()
    await pool.killControl('SIGTERM')
    expect(performance.now() - stoppedAt).toBeLessThan(20_000)
  })

  test('that is lost: its attempts fail, may be retried elsewhere, and are ended if it comes back', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    const { control } = pool
    await control.submit([
      pool.gated('t', { placement: { runtime: 'a' } }),
      pool.gated('again', { placement: { labels: {} } }, { retry: 1 }),
    ])
    await pool.running('t')
    const place = await pool.running('again')
    const there = (await control.get('again')).handle_id!
    const urlOfPlace = pool.urlOf(place)
    expect((await ask(control, 'DELETE', `/runtimes/${place}`)).status).toBe(409)
    const lost = await ask(control, 'DELETE', `/runtimes/${place}?lost=true`)
    expect([lost.status, lost.answer.attempts]).toEqual([200, place === 'a' ? 2 : 1])
    const other = place === 'a' ? 'b' : 'a'
    await until(
      () => control.get('again'),
      ({ attempt, status, placed_on }) => attempt === 2 && status === 'running' && placed_on === other,
    )
    const { attempts } = await control.get('again')
    expect(attempts![0]).toMatchObject({ attempt: 1, code: 'external_failure', placed_on: place })
    expect(attempts![0]!.error).toBe(
      `runtime ${place} is lost: it was removed for good, and what became of the attempt is unknown`,
    )
    // The machine was not gone after all: what runs there is ended.
    expect((await ask(control, 'POST', '/runtimes', { name: place, url: urlOfPlace })).status).toBeLessThan(300)
    expect((await pool.runtime(place).ended(there)).status).toBe('cancelled')
    await pool.open()
    expect(await control.ended('again')).toMatchObject({ status: 'success', attempt: 2, placed_on: other })
    if (place === 'b') expect((await control.ended('t')).status).toBe('success')
    else expect(await control.ended('t')).toMatchObject({ status: 'failed', runtime: { error: { retryable: true } } })
  })

  test('that is lost and comes back as another machine loses the attempts that wait for a slot, too', async () => {
    const ids = ['t1', 't2', 't3', 't4', 't5', 't6']
    await using pool = await startPool({ a: { flags: ['--max-running-tasks', '6'] } }, ['--max-concurrency', '6'])
    await using replacement = await startRuntime()
    await pool.control.submit(ids.map((id) => pool.gated(id, {}, { retry: 1 })))
    for (const id of ids) await pool.running(id)
    await pool.killControl()
    const control = await pool.startControl(['--max-concurrency', '5']) // one of the attempts waits for a slot
    expect((await ask(control, 'DELETE', '/runtimes/a?lost=true')).answer.attempts).toBe(6)
    expect((await ask(control, 'POST', '/runtimes', { name: 'a', url: replacement.url })).status).toBe(201)
    await pool.open()
    for (const id of ids) {
      const task = await control.ended(id)
      expect(task).toMatchObject({ status: 'success', attempt: 2, placed_on: 'a' })
      expect(task.attempts![0]).toMatchObject({ attempt: 1, code: 'external_failure' })
    }
    await pool.killControl()
    await pool.startControl() // the attempts of the replacement were placed after the loss
    expect(await pool.control.run({ type: 'runtime.script', params: { script: 'true' } })).toMatchObject({
      ...{ status: 'success', attempt: 1, placed_on: 'a' },
    })
  })

  test('that is lost while it is away, with control killed in the middle', async () => {
    await using pool = await startPool({ a: {}, b: {} })
    await pool.control.submit([pool.gated('t', { placement: { runtime: 'a' } })])
    await pool.running('t')
    await pool.killRuntime('a')
    await pool.waits('t', (text) => text.startsWith('runtime a is away since '))
    await pool.killControl()
    const control = await pool.startControl()
    await pool.waits('t', (text) => text.startsWith('runtime a is away since '))
    expect((await ask(control, 'DELETE', '/runtimes/a?lost=true')).status).toBe(200)
    expect(await control.ended('t')).toMatchObject({ status: 'failed', placed_on: 'a' })
    await pool.killControl()
    await pool.startControl()
    expect(await namesIn(pool.control)).toEqual(['b'])
    expect((await ask(pool.control, 'DELETE', '/runtimes/a?lost=true')).status).toBe(404)
  })

  test('that --with-runtime started is called default, takes tasks, and cannot be removed', async () => {
    await builtProgram('taskmill-runtime') // control finds it beside itself
    const urls = [`default=http://127.0.0.1:${await freePort()},here`, 'gone=http://127.0.0.1:1']
    const flags = ['--with-runtime', ...urls.flatMap((url) => ['--runtime-url', url])]
    await using control = await startControl({ flags })
    const task = await control.run({
      type: 'runtime.script',
      params: { script: 'echo hi', placement: { labels: { here: '' } } },
    })
    expect(task).toMatchObject({ status: 'success', placed_on: 'default' })
    const { status, answer } = await ask(control, 'DELETE', '/runtimes/default')
    expect([status, answer.error]).toEqual([
      409,
      'runtime default is started by --with-runtime: to remove it, start control without that flag',
    ])
    expect(await control.stop('SIGTERM')).toBe(0) // with its runtime service
  })
})

describe('taskmill runtimes', () => {
  test('lists, adds, drains and removes', async () => {
    await using control = await startControl()
    const client = async (...args: string[]) => {
      const { exitCode, envelope } = await runClient(['runtimes', ...args], { url: control.url })
      return exitCode === 0 ? envelope.data : [exitCode, envelope.error!.message]
    }
    expect(
      await client('add', 'gpu-1', 'http://127.0.0.1:1', '--label', 'gpu', '--label', 'zone=a,rack=7'),
    ).toMatchObject({
      ...{ name: 'gpu-1', url: 'http://127.0.0.1:1', labels: { gpu: '', zone: 'a', rack: '7' }, draining: false },
    })
    const drain = { since: expect.any(String), why: 'a fan is broken' }
    expect(await client('drain', 'gpu-1', '--why', 'a fan is broken')).toMatchObject({ draining: true, drain })
    expect(await client()).toMatchObject({ runtimes: [{ name: 'default' }, { name: 'gpu-1', state: 'away' }] })
    const { stdout } = await runClient(['runtimes', 'list', '-o', 'table'], { url: control.url })
    const [head, , gpu] = stdout.split('\n')
    expect(head).toMatch(/^NAME +STATE +ATTEMPTS +LABELS +URL/)
    expect(gpu).toMatch(/^gpu-1 +draining, away, .* +0 +gpu, zone=a, rack=7 +http:\/\/127\.0\.0\.1:1/)
    const resumed = await client('undrain', 'gpu-1')
    expect(resumed).toMatchObject({ draining: false })
    expect(resumed).not.toHaveProperty('drain')
    expect(await client('remove', 'gpu-1')).toEqual({ name: 'gpu-1', attempts: 0 })
    expect(await client('remove', 'gpu-1', '--lost')).toEqual([1, expect.stringContaining('no runtime is named gpu-1')])
  })

  test.each([
    [['frob'], 'unknown subcommand "runtimes frob" (there are: list, add, drain, undrain, remove)'],
    [['rm', 'x'], 'unknown subcommand "runtimes rm" (did you mean "remove"?)'],
    [['add', 'x'], 'runtimes add needs URL (see runtimes --help)'],
    [['drain'], 'runtimes drain needs NAME (see runtimes --help)'],
    [['list', 'x'], 'unexpected argument "x" for runtimes list'],
    [['drain', 'x', '--lost'], '--lost belongs to runtimes remove, not to drain'],
    [['list', '--label', 'gpu'], '--label belongs to runtimes add, not to list'],
    [['add', 'x', 'http://h', '--label', '_'], 'invalid value for --label: expected labels as in gpu,zone=a'],
  ])('%j is a usage error', async (args, message) => {
    const { exitCode, envelope } = await runClient(['runtimes', ...args], { url: 'http://127.0.0.1:1' })
    expect([exitCode, envelope.error!.message]).toEqual([2, expect.stringContaining(message)])
  })
})

/** GET /tasks/{id}/logs: the output of a task as text, also while it is written. Against the built service. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { oddServer, startMcpControl } from '../support/mcp.ts'
import { connectClient } from '../support/mcp-client.ts'
import { startPair } from '../support/pair.ts'
import { reading } from '../support/reading.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { RawClient } from './raw-client.ts'

let control: Control
let temp: TempDir
beforeAll(async () => {
  temp = tempDir()
  control = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' } })
})
afterAll(async () => {
  await control.dispose()
  temp[Symbol.dispose]()
})

const file = (name: string) => join(temp.path, name)
const go = (name: string) => Bun.write(file(name), '')
const openFilesOf = (pid: number): number => readdirSync(`/proc/${pid}/fd`).length
let count = 0
const newId = () => `task-${++count}`

const script = (text: string, more: object = {}) => ({ id: newId(), type: 'shell', params: { script: text }, ...more })

/** Submits one task, without waiting for anything. */
async function start(task: { readonly id: string }): Promise<string> {
  await control.submit([task])
  return task.id
}
async function run(task: { readonly id: string }): Promise<string> {
  await start(task)
  await control.ended(task.id)
  return task.id
}

const logs = (id: string, query = '', init?: RequestInit) => control.fetch(`/tasks/${id}/logs?${query}`, init)
const text = async (id: string, query = '') => (await logs(id, query)).text()

describe('of a task that has ended', () => {
  test('is each stream as plain text, with headers that say what it is', async () => {
    const id = await run(script('echo out; echo err >&2; echo more'))
    const answer = await logs(id)
    expect(answer.status).toBe(200)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      ...{ 'x-task-status': 'success', 'x-task-attempt': '1', 'x-log-truncated': 'false' },
    })
    expect(await answer.text()).toBe('out\nmore\n')
    expect(await text(id, 'stream=stderr')).toBe('err\n')
    expect(await text(id, 'follow=true')).toBe('out\nmore\n')
  })

  test('may be its last lines only', async () => {
    const id = await run(script('printf "1\\n2\\n3"'))
    const tails = await Promise.all([0, 1, 2, 3, 100_000].map((tail) => text(id, `tail=${tail}`)))
    expect(tails).toEqual(['', '3', '2\n3', '1\n2\n3', '1\n2\n3'])
  })

  test('is the newest attempt, and its header names it', async () => {
    const id = await run(script('echo $TASKMILL_ATTEMPT; exit 3', { retry: 1 }))
    const answer = await logs(id)
    expect(answer.headers.get('x-task-attempt')).toBe('2')
    expect(answer.headers.get('x-task-status')).toBe('failed')
    expect(await answer.text()).toMatch(/^\S+\/2\n$/)
  })

  test('says that it was cut', async () => {
    const id = await run(script('head -c 1100000 /dev/zero | tr "\\0" x'))
    const answer = await logs(id)
    expect(answer.headers.get('x-log-truncated')).toBe('true')
    expect((await answer.text()).length).toBe(1024 * 1024)
    expect((await logs(id, 'stream=stderr')).headers.get('x-log-truncated')).toBe('false')
  })

  test('is the output of a skill or command, the text of another result, or the result itself', async () => {
    const command = { id: newId(), type: 'cli-skills', params: { command: 'sh', args: ['-c', 'echo a; echo b >&2'] } }
    expect(await text(await run(command))).toBe('a\nb\n')
    const page = { id: newId(), type: 'http', params: { url: `${control.url}/health` } }
    expect(JSON.parse(await text(await run(page)))).toMatchObject({ status: 'ok' })
    expect(await text(await run({ id: newId(), type: 'noop', params: { message: 'hi' } } as never))).toBe(
      '{"ok":true,"message":"hi"}\n',
    )
  })

  test('is there when the result is in a file, and after a restart', async () => {
    await using own = await startControl({ env: { SERVICE_SHELL_POLICY: 'open' }, dataDir: file('data') })
    await own.submit([{ id: 'a', type: 'shell', params: { script: 'seq 1 100000' } }])
    await own.ended('a')
    const before = await (await own.fetch('/tasks/a/logs')).text()
    expect(before).toEndWith('\n100000\n')
    await own.stop()
    await using again = await startControl({ dataDir: file('data') })
    expect(await (await again.fetch('/tasks/a/logs?tail=1')).text()).toBe('100000\n')
    expect(await (await again.fetch('/tasks/a/logs')).text()).toBe(before)
  })
})

describe('from an offset', () => {
  const part = async (id: string, query: string) => {
    const answer = await logs(id, query)
    return [answer.headers.get('x-task-attempt'), answer.headers.get('x-log-offset'), await answer.text()]
  }

  test('are the bytes that come after it, in the attempt that it counts in', async () => {
    const id = await run(script(`echo "\${TASKMILL_ATTEMPT##*/}: é"; exit 1`, { retry: 1 }))
    expect(await part(id, 'offset=0')).toEqual(['2', '0', '2: é\n'])
    expect(await part(id, 'offset=3&attempt=2')).toEqual(['2', '3', 'é\n'])
    expect(await part(id, 'offset=6&attempt=2')).toEqual(['2', '6', ''])
    expect(await part(id, 'offset=600&attempt=2&follow=attempt')).toEqual(['2', '600', ''])
    expect(await part(id, 'offset=3&attempt=1')).toEqual(['2', '0', '2: é\n'])
    expect(await part(id, 'tail=1')).toEqual(['2', '0', '2: é\n'])
    expect(await part(id, 'offset=0&stream=stderr')).toEqual(['2', '0', ''])
  })

  test('a log that is followed by attempts ends with each of them', async () => {
    const two = `${waitFor(file('j'))}; echo two; ${waitFor(file('k'))}; exit 1`
    const first = `[ "\${TASKMILL_ATTEMPT##*/}" = 2 ] || { ${two}; }`
    const id = await start(script(`echo one; ${first}; echo three`, { retry: 1 }))
    const begin = await logs(id, 'follow=attempt')
    expect(begin.headers.get('x-task-attempt')).toBe('1')
    const followed = reading(begin)
    await followed.has('one\n')
    const resumed = reading(logs(id, 'follow=attempt&attempt=1&offset=2'))
    const later = reading(logs(id, 'follow=attempt&attempt=1&offset=6'))
    await go('j')
    await Promise.all([followed.has('one\ntwo\n'), resumed.has('e\ntwo\n'), later.has('o\n')])
    await go('k')
    await Promise.all([followed.done, resumed.done, later.done])
    expect([followed, resumed, later].map(({ state }) => state.received)).toEqual(['one\ntwo\n', 'e\ntwo\n', 'o\n'])
    expect(await part(id, 'follow=attempt&attempt=1&offset=8')).toEqual(['2', '0', 'one\nthree\n'])
  })

  test('of a call of an MCP server count what it reported, and its answer', async () => {
    await using servers = await startMcpControl({ odd: oddServer() })
    const own = servers.control
    await own.submit([{ id: 'a', type: 'mcp', tool_name: 'odd/progress', input: { message: 'half way' } }])
    await own.ended('a')
    const whole = await (await own.fetch('/tasks/a/logs')).text()
    for (const offset of [0, 4, 9, 12, whole.length, whole.length + 5]) {
      const rest = await own.fetch(`/tasks/a/logs?offset=${offset}&attempt=1`)
      expect([rest.headers.get('x-log-offset'), await rest.text()]).toEqual([String(offset), whole.slice(offset)])
    }
  })
})

describe('of a running task', () => {
  test('is what there is so far; followed, what comes until its end', async () => {
    const id = await start(script(`echo one; echo two; ${waitFor(file('a'))}; echo three; echo err >&2`))
    await until(() => text(id), 'one\ntwo\n')
    const answer = await logs(id, 'tail=1')
    expect(answer.headers.get('x-task-status')).toBe('running')
    expect(await answer.text()).toBe('two\n')
    const none = reading(logs(id, 'follow=true&tail=0')) // the first, as nothing tells when it has begun
    const all = reading(logs(id, 'follow=true'))
    const last = reading(logs(id, 'follow=true&tail=1'))
    const complaints = reading(logs(id, 'follow=true&stream=stderr'))
    await all.has('one\ntwo\n')
    await last.has('two\n')
    expect(all.state.hasEnded).toBe(false)
    await go('a')
    await Promise.all([all.done, last.done, none.done, complaints.done])
    expect([all, last, none, complaints].map(({ state }) => state.received)).toEqual([
      ...['one\ntwo\nthree\n', 'two\nthree\n', 'three\n', 'err\n'],
    ])
    expect((await control.get(id)).status).toBe('success')
  })

  test('is byte for byte what it writes', async () => {
    const id = await start(script(`printf 'a\\000\\377\\376\\r\\n\\303'; ${waitFor(file('b'))}`))
    const bytes = await until(
      async () => [...new Uint8Array(await (await logs(id)).arrayBuffer())],
      ({ length }) => length > 0,
    )
    expect(bytes).toEqual([0x61, 0, 0xff, 0xfe, 0x0d, 0x0a, 0xc3])
    await go('b')
  })

  test('has been waited for while the task waited for its turn', async () => {
    const gate = script(waitFor(file('c')))
    const task = script('echo done', { depends_on: [gate.id] })
    await control.submit([gate, task])
    expect((await logs(task.id)).headers.get('x-task-status')).toBe('pending')
    expect((await logs(task.id)).headers.has('x-task-attempt')).toBe(false)
    const answer = logs(task.id, 'follow=true')
    const followed = reading(answer)
    await go('c')
    await followed.done
    expect(followed.state.received).toBe('done\n')
    expect((await answer).headers.get('x-task-attempt')).toBe('1')
  })

  test('goes on with the next attempt', async () => {
    const attempt = `n=\${TASKMILL_ATTEMPT##*/}; echo $n; until test -e ${file('d')}$n; do sleep 0.01; done; exit 1`
    const id = await start(script(attempt, { retry: 2 }))
    const followed = reading(logs(id, 'follow=true'))
    for (const [n, soFar] of ['1\n', '1\n2\n', '1\n2\n3\n'].entries()) {
      await followed.has(soFar)
      await go(`d${n + 1}`)
    }
    await followed.done
    expect(followed.state.received).toBe('1\n2\n3\n')
  })

  test('ends when the task is cancelled, skipped or deleted', async () => {
    const gate = script(`echo on; ${waitFor(file('never'))}`)
    const skipped = script('echo', { depends_on: [gate.id] })
    await control.submit([gate, skipped])
    const followed = [gate, skipped].map(({ id }) => reading(logs(id, 'follow=true')))
    await followed[0]!.has('on\n')
    await control.fetch(`/tasks/${gate.id}/cancel`, { method: 'POST' })
    await Promise.all(followed.map(({ done }) => done))
    expect(followed.map(({ state }) => state.received)).toEqual(['on\n', ''])

    const deleted = await start(script('echo', { depends_on: [] }))
    await control.ended(deleted)
    const waits = script(waitFor(file('e')))
    const later = script('echo', { depends_on: [waits.id] })
    await control.submit([waits, later])
    const following = reading(logs(later.id, 'follow=true'))
    await control.reached(waits.id, 'running')
    await control.fetch(`/tasks/${later.id}`, { method: 'DELETE' })
    await following.done
    await go('e')
  })

  test('is seen by get_logs, too', async () => {
    await using mcp = await connectClient(control.url)
    const id = await start(script(`echo one; echo bad >&2; ${waitFor(file('f'))}`))
    const textOf = async (stream: string) => (await mcp.call('get_logs', { task_id: id, stream })).data.text
    await until(
      async () => [await textOf('stdout'), await textOf('stderr')],
      ([stdout, stderr]) => stdout === 'one\n' && stderr === 'bad\n',
    )
    expect((await mcp.call('get_logs', { task_id: id })).data).toMatchObject({
      ...{ text: 'one\n', streams: expect.arrayContaining(['stderr']) },
    })
    expect((await mcp.call('get_logs', { task_id: id, stream: 'stderr' })).data).toMatchObject({
      ...{ text: 'bad\n', status: 'running', next: expect.stringContaining('so far') },
    })
    await go('f')
  })

  test('of a call of an MCP server is what the server reports, then what it answers', async () => {
    await using servers = await startMcpControl({ odd: oddServer() })
    const own = servers.control
    await own.submit([{ id: 'a', type: 'mcp', tool_name: 'odd/progress', input: { message: 'half way' } }])
    const followed = reading(own.fetch('/tasks/a/logs?follow=true'))
    await followed.done
    expect(followed.state.received).toMatch(/^half way\n./)
    expect(await (await own.fetch('/tasks/a/logs')).text()).toBe(followed.state.received)
  })
})

/** Follows on a connection of its own: `fetch` has a limit on those that are open. */
function follower(id: string) {
  const socket = connect(Number(new URL(control.url).port), '127.0.0.1')
  let received = ''
  socket.on('data', (bytes) => {
    received += bytes
  })
  socket.write(`GET /tasks/${id}/logs?follow=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
  const ended = new Promise<number>((resolve) => socket.on('close', () => resolve(received.length)))
  return { socket, ended, has: (wanted: string) => received.replaceAll(/\r\n[\da-f]+\r\n/g, '').includes(wanted) }
}

describe('followers', () => {
  test('a thousand of one log get all of it, and requests are answered meanwhile', async () => {
    const id = await start(script(`echo first; ${waitFor(file('g'))}; seq 1 2000; echo last`))
    await until(() => text(id), 'first\n')
    const followed = Array.from({ length: 1_000 }, () => follower(id))
    await until(() => followed.filter(({ has }) => has('first')).length, 1_000)
    expect((await control.fetch('/health')).status).toBe(200)
    await go('g')
    const sizes = await Promise.all(followed.map(({ ended }) => ended))
    expect(followed.every(({ has }) => has('\n2000\nlast\n'))).toBe(true)
    expect(Math.min(...sizes)).toBeGreaterThan(8_000)
  })

  test('one who leaves is gone at once', async () => {
    const id = await start(script(waitFor(file('h'))))
    const before = openFilesOf(control.process.pid)
    const following = Array.from({ length: 50 }, () => follower(id))
    await until(
      () => openFilesOf(control.process.pid),
      (now) => now >= before + 45, // some from before may be closed by now
    )
    for (const { socket } of following) socket.destroy()
    await until(
      () => openFilesOf(control.process.pid),
      (now) => now <= before + 5, // the service may open some for the output of the task
    )
    await go('h')
  })

  test('one who reads nothing holds up nobody', async () => {
    const id = await start(script(`echo first; ${waitFor(file('i'))}; head -c 1000000 /dev/zero | tr "\\0" x`))
    const stalled = Array.from({ length: 20 }, () => follower(id).socket.pause())
    const followed = reading(logs(id, 'follow=true'))
    await followed.has('first\n')
    await go('i')
    await followed.done
    expect(followed.state.received.length).toBe(1_000_006)
    for (const socket of stalled) socket.destroy()
  })

  test('one who reads nothing for --slow-client-timeout is cut off, one who waits for output is not', async () => {
    await using pair = await startPair({ controlFlags: ['--slow-client-timeout', '1s'] })
    const task = (id: string, text: string) => ({ id, type: 'runtime.script', params: { script: text } })
    const large = 'head -c 30000000 /dev/zero | tr "\\0" x; exec sleep 600' // more than the kernel holds for a socket
    await pair.control.submit([task('silent', 'echo on; exec sleep 600'), task('large', large)])
    const patient = reading(pair.control.fetch('/tasks/silent/logs?follow=true'))
    await patient.has('on\n')
    using stalled = await RawClient.connect(pair.control)
    stalled.send('GET /tasks/large/logs?follow=true HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await until(
      () => stalled.received.length,
      (length) => length > 0,
    )
    stalled.pause()
    await until(() => stalled.isCut)
    expect((await pair.control.get('large')).status).toBe('running')
    expect(patient.state.hasEnded).toBe(false)
    for (const id of ['silent', 'large']) await pair.control.fetch(`/tasks/${id}/cancel`, { method: 'POST' })
    await patient.done
    await pair.control.allEnded()
  })

  test('of a service that stops are let go', async () => {
    await using own = await startControl({
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--shutdown-timeout', '100ms'],
    })
    await own.submit([{ id: 'a', type: 'shell', params: { script: 'echo on; exec sleep 600' } }])
    const followed = reading(own.fetch('/tasks/a/logs?follow=true'))
    await followed.has('on\n')
    expect(await own.stop()).toBe(0)
    await followed.done
    expect(followed.state.received).toBe('on\n')
  })
})

describe('as events', () => {
  const events = { accept: 'text/event-stream' }
  const bytesIn = (received: string) =>
    Buffer.concat(
      [...received.matchAll(/^event: bytes\ndata: (.*)$/gm)].map(([, data]) => Buffer.from(data!, 'base64')),
    )

  test('a task that is silent gets comments, and then its bytes as they are', async () => {
    await using own = await startControl({
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--event-keep-alive', '100ms'],
    })
    const [attempt, go] = [file('silent-attempt'), file('silent')]
    const output = `printf 'a\\000\\377\\376\\r\\n\\303'`
    await own.submit([script(`echo > ${attempt}; ${waitFor(go)}; ${output}`, { id: 'silent' })])
    const answer = await own.fetch('/tasks/silent/logs?follow=true', { headers: events }) // before the first byte
    expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
    const followed = reading(answer)
    await until(
      () => followed.state.received,
      (received) => received.startsWith(': open\n\n') && received.split(': keep-alive\n\n').length > 3,
    )
    expect(followed.state.received).not.toContain('event: bytes')
    await Bun.write(go, '')
    await followed.done
    const begin = JSON.parse(/^event: begin\ndata: (.*)$/m.exec(followed.state.received)![1]!)
    expect(begin).toMatchObject({ attempt: 1, offset: 0, truncated: false })
    expect([...bytesIn(followed.state.received)]).toEqual([0x61, 0, 0xff, 0xfe, 0x0d, 0x0a, 0xc3])
    expect(followed.state.received.indexOf('event: begin')).toBeLessThan(
      followed.state.received.indexOf('event: bytes'),
    )
  })

  test('begin where they are asked to; a log that is not followed stays plain', async () => {
    const id = await run(script('echo one; echo two'))
    const followed = await (await logs(id, 'follow=true&tail=1', { headers: events })).text()
    expect(bytesIn(followed).toString()).toBe('two\n')
    expect(followed).toContain('"offset":4,')
    const plain = await logs(id, '', { headers: events })
    expect(plain.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(await plain.text()).toBe('one\ntwo\n')
  })

  test('who leaves is gone at once, and a service that stops lets go', async () => {
    await using own = await startControl({
      env: { SERVICE_SHELL_POLICY: 'open' },
      flags: ['--shutdown-timeout', '100ms', '--event-keep-alive', '100ms'],
    })
    await own.submit([{ id: 'a', type: 'shell', params: { script: 'echo on; exec sleep 600' } }])
    const leaving = new AbortController()
    const before = openFilesOf(own.process.pid)
    const follow = () => own.fetch('/tasks/a/logs?follow=true', { headers: events, signal: leaving.signal })
    for (const left of await Promise.all(Array.from({ length: 20 }, follow))) await left.body!.getReader().read()
    leaving.abort()
    await until(
      () => openFilesOf(own.process.pid),
      (open) => open <= before + 5, // the service may open some for the output of the task
    )
    const followed = reading(own.fetch('/tasks/a/logs?follow=true', { headers: events }))
    await until(() => bytesIn(followed.state.received).toString(), 'on\n')
    expect(await own.stop()).toBe(0)
    await followed.done
  })
})

describe('refused', () => {
  test.each([
    ['stream=stdouts', 'invalid stream "stdouts": expected stdout or stderr (did you mean "stdout"?)'],
    ['follow=maybe', 'invalid follow "maybe": expected true, attempt or false'],
    ['offset=-1', 'invalid offset "-1": expected a whole number from 0 on'],
    ['offset=0&attempt=0', 'invalid attempt "0": expected a whole number from 1 on'],
    ['offset=1e3', 'invalid offset "1e3": expected a whole number from 0 on'],
    ['offset=1&tail=1', 'tail and offset exclude each other'],
    ['attempt=1', 'attempt says what offset counts in: give both'],
    ['tail=-1', 'invalid tail "-1": expected a number of lines from 0 to 100000'],
    ['tail=100001', 'invalid tail "100001": expected a number of lines from 0 to 100000'],
    ['folow=true', 'unknown query parameter "folow" (did you mean "follow"?)'],
  ])('%s', async (query, error) => {
    const answer = await logs(await run(script('true')), query)
    expect([answer.status, await answer.json()]).toEqual([400, { error }])
  })

  test('an unknown task, another method', async () => {
    const unknown = await logs('nobody')
    expect([unknown.status, await unknown.json()]).toEqual([404, { error: 'task not found: nobody' }])
    expect((await logs('nobody', '', { method: 'POST' })).status).toBe(405)
  })
})

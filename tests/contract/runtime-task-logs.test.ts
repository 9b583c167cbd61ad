/** GET /tasks/{id}/logs of tasks that the runtime service executes, also while one of the services is away. */
import { expect, test } from 'bun:test'
import { connect } from 'node:net'
import { type Pair, startPair } from '../support/pair.ts'
import { reading } from '../support/reading.ts'
import { waitFor } from '../support/runtime-tasks.ts'
import { until } from '../support/until.ts'

const logs = (pair: Pair, id: string, query = '') => pair.control.fetch(`/tasks/${id}/logs?${query}`)
const follow = (pair: Pair, id: string, query = '') => reading(logs(pair, id, `follow=true&${query}`))

test('the output so far, its last lines, and what comes until the task has ended', async () => {
  await using pair = await startPair()
  const go = pair.file('go')
  await pair.script('a', `echo one; echo two; echo bad >&2; ${waitFor(go)}; echo three`)
  await pair.script('ticks', `echo one; while [ ! -e '${go}' ]; do echo tick; sleep 0.02; done; echo three`)
  await pair.there('a', ({ stdout, stderr }) => stdout === 'one\ntwo\n' && stderr === 'bad\n')
  await pair.running('ticks')
  const answer = await logs(pair, 'a')
  expect([answer.headers.get('x-task-status'), answer.headers.get('x-task-attempt')]).toEqual(['running', '1'])
  expect(await answer.text()).toBe('one\ntwo\n')
  expect(await (await logs(pair, 'a', 'tail=1')).text()).toBe('two\n')
  expect(await (await logs(pair, 'a', 'stream=stderr')).text()).toBe('bad\n')
  const followed = ['', 'tail=1', 'stream=stderr'].map((query) => follow(pair, 'a', query))
  const fromNow = follow(pair, 'ticks', 'tail=0')
  await followed[0]!.has('one\ntwo\n')
  await followed[1]!.has('two\n')
  await followed[2]!.has('bad\n')
  // It shows where it has begun only by what the task prints after that.
  await until(
    () => fromNow.state.received,
    (text) => text !== '',
  )
  await Bun.write(go, '')
  await Promise.all([...followed, fromNow].map(({ done }) => done))
  expect(followed.map(({ state }) => state.received)).toEqual(['one\ntwo\nthree\n', 'two\nthree\n', 'bad\n'])
  expect(fromNow.state.received).toMatch(/^(tick\n)+three\n$/)
  expect(await (await logs(pair, 'a')).text()).toBe('one\ntwo\nthree\n')
})

test('an output that its result has only a part of is whole, while the runtime service has it', async () => {
  await using pair = await startPair()
  await pair.script('a', `seq 1 200000; ${waitFor(pair.file('go'))}`)
  const followed = follow(pair, 'a')
  await until(() => followed.state.received.length, 1_288_895)
  await Bun.write(pair.file('go'), '')
  await followed.done
  await pair.ended('a')
  const whole = await logs(pair, 'a')
  expect(whole.headers.get('x-log-truncated')).toBe('false')
  expect(await whole.text()).toBe(followed.state.received)
  expect(await (await logs(pair, 'a', 'tail=2')).text()).toBe('199999\n200000\n')
  await pair.stopRuntime('SIGKILL')
  const part = await logs(pair, 'a')
  expect(part.headers.get('x-log-truncated')).toBe('true')
  expect((await part.text()).length).toBe(256 * 1024)
})

test('a task that waits for its turn is waited for, and the next attempt follows', async () => {
  await using pair = await startPair()
  await pair.control.submit([
    { id: 'gate', type: 'runtime.script', params: { script: waitFor(pair.file('go')) } },
    {
      ...{ id: 'a', type: 'runtime.script', retry: 1, depends_on: ['gate'] },
      params: { script: `echo go; ${waitFor(pair.file('end'))}; exit 3` },
    },
  ])
  const followed = follow(pair, 'a')
  await Bun.write(pair.file('go'), '')
  await followed.has('go\n')
  await Bun.write(pair.file('end'), '')
  await followed.done
  expect(followed.state.received).toBe('go\ngo\n')
})

test('an offset counts in the whole output, also while its result holds a part of it', async () => {
  await using pair = await startPair()
  await pair.script('a', `seq 1 100000; ${waitFor(pair.file('go'))}; echo end`)
  await until(async () => (await logs(pair, 'a', 'offset=588890')).text(), '00000\n'.slice(1))
  const begun = await logs(pair, 'a', 'follow=attempt&offset=588000&attempt=1')
  expect([begun.headers.get('x-task-attempt'), begun.headers.get('x-log-offset')]).toEqual(['1', '588000'])
  const tail = await logs(pair, 'a', 'tail=1')
  expect([tail.headers.get('x-log-offset'), await tail.text()]).toEqual(['588888', '100000\n'])
  const followed = reading(begun)
  await Bun.write(pair.file('go'), '')
  await followed.done
  expect(followed.state.received).toEndWith('\n100000\nend\n')
  expect(followed.state.received.length).toBe(588_895 + 4 - 588_000)
  await pair.ended('a')
  expect(await (await logs(pair, 'a', 'offset=588888&attempt=1')).text()).toBe('100000\nend\n')
})

test('a log that is followed goes on after a restart of the runtime service', async () => {
  await using pair = await startPair()
  await pair.script('a', `echo one; ${waitFor(pair.file('go'))}; echo two`)
  const followed = follow(pair, 'a')
  await followed.has('one\n')
  await pair.stopRuntime('SIGKILL')
  expect((await logs(pair, 'a')).status).toBe(503)
  await pair.startRuntime()
  await Bun.write(pair.file('go'), '')
  await followed.done
  expect(followed.state.received).toBe('one\ntwo\n')
})

/** More than any pool of connections, or of threads, would have. */
const FOLLOWERS = 300

test('hundreds of followers share one connection, and a stalled one holds up nobody', async () => {
  await using pair = await startPair()
  await pair.script('a', `echo first; ${waitFor(pair.file('go'))}; seq 1 400000; echo last`)
  await pair.running('a')
  const port = Number(new URL(pair.control.url).port)
  const followers = Array.from({ length: FOLLOWERS }, () => {
    const socket = connect(port, '127.0.0.1')
    let length = 0
    let end = ''
    socket.on('data', (bytes) => {
      length += bytes.length
      end = (end + bytes.toString('latin1')).slice(-200)
    })
    socket.write('GET /tasks/a/logs?follow=true&tail=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
    const closed = new Promise((resolve) => socket.on('close', resolve))
    return { socket, closed, length: () => length, end: () => end }
  })
  await until(() => followers.filter(({ end }) => end().includes('first')).length, FOLLOWERS)
  const [stalled, ...others] = followers
  stalled!.socket.pause()
  await Bun.write(pair.file('go'), '')
  await Promise.all(others.map(({ closed }) => closed))
  expect(others.filter(({ end }) => end().includes('400000\nlast\n')).length).toBe(FOLLOWERS - 1)
  expect(Math.min(...others.map(({ length }) => length()))).toBeGreaterThan(2_600_000)
  stalled!.socket.destroy()
})

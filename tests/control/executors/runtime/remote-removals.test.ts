/**
 * Goal: tasks that are gone here are removed from the runtime service, whatever happens in between, within limits.
 * Method: removals in a directory of their own, and a server that stands for the runtime service.
 */
import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RemoteRemovals } from '../../../../control/executors/runtime/remote-removals.ts'
import { RuntimeService } from '../../../../control/executors/runtime/service.ts'
import { type Log, silentLog } from '../../../../shared/logs/log.ts'
import { poolOf } from '../../../support/lone-runtime.ts'
import { memoryKeeper } from '../../../support/memory-keeper.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { tempDir } from '../../../support/temp.ts'
import { until } from '../../../support/until.ts'

interface Asked {
  readonly id: string
  readonly owner: string | null
}

/** `answer` gives the status of each DELETE. */
function world(answer: (id: string) => number | Promise<number>) {
  const dir = tempDir()
  const asked: Asked[] = []
  const load = { now: 0, most: 0 }
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch({ url, method, headers }) {
      const id = new URL(url).pathname.split('/').at(-1)!
      expect(method).toBe('DELETE')
      asked.push({ id, owner: headers.get('x-service-owner') })
      load.most = Math.max(load.most, ++load.now)
      const status = await answer(id)
      load.now--
      const refusal = { error: { code: 'test', message: 'answer of a test' } }
      return status === 204 ? new Response(null, { status }) : Response.json(refusal, { status })
    },
  })
  const service = new RuntimeService({ url: server.url.href, token: undefined, keeper: memoryKeeper() })
  const path = join(dir.path, 'runtime-drops.jsonl')
  return {
    ...{ asked, load, path, service },
    removals: (options: { maxRemovals?: number; log?: Log } = {}) =>
      new RemoteRemovals({
        dataDir: dir.path,
        pool: poolOf(service),
        keeper: memoryKeeper(),
        log: silentLog(),
        ...options,
      }),
    onDisk: () => (existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : []),
    async [Symbol.asyncDispose]() {
      await server.stop(true)
      dir[Symbol.dispose]()
    },
  }
}

const allDone = (removals: RemoteRemovals) =>
  until(
    () => removals.size,
    (size) => size === 0,
  )
const ids = (count: number) => Array.from({ length: count }, (_, i) => `task-${i}`)
const named = (ids: readonly string[]) => ids.map((id) => ({ id }))
const turn = () => new Promise((resolve) => setImmediate(resolve))

test('each is asked for once, with its owner, a few at a time, and then the file is gone', async () => {
  const written = Promise.withResolvers<void>()
  await using at = world(async () => {
    await written.promise
    await turn()
    return 204
  })
  const removals = at.removals()
  removals.add(named(ids(300)), 'josé')
  removals.add(named(['unowned']), undefined)
  await until(at.onDisk, (lines) => lines.length === 301)
  written.resolve()
  await allDone(removals)
  expect(at.asked.map(({ id }) => id).toSorted()).toEqual([...ids(300), 'unowned'].toSorted())
  const owners = new Set(at.asked.map(({ owner }) => owner && Buffer.from(owner, 'latin1').toString('utf8')))
  expect(owners).toEqual(new Set(['josé', null]))
  expect(at.load.most).toBeLessThanOrEqual(4)
  await until(
    () => existsSync(at.path),
    (exists) => !exists,
  )
})

test('they outlive the service that added them, a torn last line too', async () => {
  let isAway = true
  await using at = world(() => (isAway ? 503 : 204))
  at.removals().add(named(['a', 'b']), undefined)
  await until(at.onDisk, (lines) => lines.length === 2)
  await Bun.write(at.path, `${readFileSync(at.path, 'utf8')}["tor`)
  isAway = false
  const removals = at.removals()
  expect(removals.size).toBe(2)
  removals.start()
  await allDone(removals)
  expect(new Set(at.asked.map(({ id }) => id))).toEqual(new Set(['a', 'b']))
})

test('while the service is away nothing is lost, and it is not asked for each of them', async () => {
  let isAway = true
  await using at = world(() => (isAway ? 502 : 204))
  const removals = at.removals()
  removals.add(named(ids(1_000)), undefined)
  await until(
    () => at.asked.length,
    (count) => count > 4, // a second round
  )
  expect(at.asked.length).toBeLessThan(50)
  expect(removals.size).toBe(1_000)
  isAway = false
  await allDone(removals)
})

test('one that runs there still is tried again, one that is unknown there is done', async () => {
  let hasEnded = false
  await using at = world((id) => (id === 'unknown' ? 404 : hasEnded ? 204 : 409))
  const removals = at.removals()
  removals.add(named(['running', 'unknown']), undefined)
  await until(
    () => at.asked.filter(({ id }) => id === 'running').length,
    (count) => count === 2,
  )
  expect(removals.size).toBe(1)
  hasEnded = true
  await allDone(removals)
  expect(at.asked.filter(({ id }) => id === 'unknown').length).toBe(1)
})

test('a refusal is final, and one line in the log for all of its kind', async () => {
  await using at = world(() => 405)
  const { log, lines } = memoryLog()
  const removals = at.removals({ log })
  removals.add(named(ids(20)), undefined)
  await allDone(removals)
  expect(at.asked.length).toBe(20)
  expect(lines().filter(({ msg }) => msg === 'the runtime service does not remove tasks').length).toBe(1)
})

test('there are at most so many: the oldest are left to the retention of the runtime service', async () => {
  let isAway = true
  await using at = world(() => (isAway ? 503 : 204))
  const removals = at.removals({ maxRemovals: 10 })
  removals.add(named(ids(15)), undefined)
  await until(
    () => removals.size,
    (size) => size === 10,
  )
  const before = at.asked.length
  isAway = false
  await allDone(removals)
  const removed = new Set(at.asked.slice(before).map(({ id }) => id))
  for (const id of ids(5)) expect(removed).not.toContain(id)
})

test('an entry behind a torn line is read again', async () => {
  await using at = world(() => 503)
  await Bun.write(at.path, '["a",null,1700000000000]\n["tor')
  const removals = at.removals()
  removals.add(named(['b', 'c']), undefined)
  await until(at.onDisk, (lines) => lines.length === 4)
  expect(at.removals().size).toBe(3)
})

test('while the service is away, new ones do not start further rounds', async () => {
  await using at = world(() => 503)
  const removals = at.removals()
  const startedAt = performance.now()
  const passedMs = () => performance.now() - startedAt
  let added = 0
  while (passedMs() < 800 || at.asked.length <= 4) {
    removals.add(named([`task-${added++}`]), undefined)
    await Bun.sleep(1) // the interval between removals, which is shorter than the one between rounds
  }
  // Rounds of at most 4 calls, with pauses of 100, 200, 400 ms and so on between them.
  const mostRounds = 1 + Math.floor(Math.log2(passedMs() / 90 + 1))
  expect(at.asked.length).toBeLessThanOrEqual(4 * mostRounds)
  expect(removals.size).toBe(added)
})

test('those that are too old are given up with one line', async () => {
  await using at = world(() => 204)
  const { log, lines } = memoryLog()
  await Bun.write(
    at.path,
    ids(1_000)
      .map((id) => `${JSON.stringify([id, null, 1_000])}\n`)
      .join(''),
  )
  const removals = at.removals({ log })
  removals.start()
  await until(
    () => existsSync(at.path),
    (exists) => !exists,
  )
  expect(at.asked).toEqual([])
  expect(lines()).toMatchObject([{ level: 'warn', count: 1_000 }])
})

test('a mistake in a call is logged, and the next round tries it again', async () => {
  const { log, lines } = memoryLog()
  let calls = 0
  const service = {
    remove: async () => {
      if (++calls === 1) throw new TypeError('x is not a function')
    },
  }
  using dir = tempDir()
  const removals = new RemoteRemovals({ dataDir: dir.path, pool: poolOf(service), keeper: memoryKeeper(), log })
  removals.add(named(['a']), undefined)
  await allDone(removals)
  expect(calls).toBe(2)
  expect(lines()).toMatchObject([{ level: 'error', handle_id: 'a', cause: expect.stringContaining('TypeError') }])
})

test('the file is rewritten without those that are finished', async () => {
  const open = 50
  await using at = world((id) => (Number(id.slice(5)) < open ? 409 : 204))
  const removals = at.removals()
  removals.add(named(ids(20_000)), undefined)
  await until(
    () => removals.size,
    (size) => size === open,
    { patienceMs: 100_000 },
  )
  await until(at.onDisk, (lines) => lines.length === open)
  expect(at.removals().size).toBe(open)
}, 150_000)

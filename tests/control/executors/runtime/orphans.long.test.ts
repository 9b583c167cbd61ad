/**
 * Goal: what nobody waits for is ended as soon as that can be done.
 * Method: orphans of their own, and a server that stands for the runtime service.
 */
import { expect, test } from 'bun:test'
import { Orphans } from '../../../../control/executors/runtime/orphans.ts'
import { RuntimeService } from '../../../../control/executors/runtime/service.ts'
import { KeptOrphans, type OrphanKeeper, type OrphanState } from '../../../../control/log/kept-orphans.ts'
import { CallFailed } from '../../../../shared/http/client.ts'
import { poolOf } from '../../../support/lone-runtime.ts'
import { memoryKeeper } from '../../../support/memory-keeper.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { until } from '../../../support/until.ts'

/** What `answer` gives for the kill of an orphan is its status. */
function killsAnsweredBy(answer: (id: string) => number) {
  const kills: string[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch({ url }) {
      const id = new URL(url).pathname.split('/').at(-2)!
      kills.push(id)
      const status = answer(id)
      return Response.json({ error: { code: 'test', message: `refused as ${status}` } }, { status })
    },
  })
  const service = new RuntimeService({ url: server.url.href, token: undefined, keeper: memoryKeeper() })
  const { log, lines } = memoryLog()
  const orphans = new Orphans(poolOf(service), log)
  const written: OrphanState[] = []
  const kept = new KeptOrphans((orphan) => void written.push(orphan))
  orphans.keepIn(kept)
  return {
    kills,
    lines,
    add: (handle_id: string) => orphans.add({ handle_id, is_taken: true, since: Date.now() }),
    written,
    allEnded: (patienceMs?: number) =>
      until(
        () => kept.found,
        ({ length }) => length === 0,
        { ...(patienceMs !== undefined && { patienceMs }) },
      ),
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

/** Rounds after which the next one is more than three seconds away. */
const LONG_PAUSES = 6

test('one that comes does not wait for those that have been there for long', async () => {
  let isHelpful = false
  await using world = killsAnsweredBy((id) => (id !== 'refused' || isHelpful ? 200 : 403))
  world.add('refused')
  await until(
    () => world.kills.length,
    (count) => count === LONG_PAUSES,
  )
  const startedAt = performance.now()
  world.add('new')
  await until(
    () => world.kills,
    (kills) => kills.includes('new'),
  )
  expect(performance.now() - startedAt).toBeLessThan(2_500)
  isHelpful = true
  world.add('last')
  await world.allEnded()
})

test('a refusal is logged once, and again with another cause', async () => {
  let status = 500
  await using world = killsAnsweredBy(() => status)
  const causes = () => world.lines().flatMap(({ level, cause }) => (level === 'error' ? [String(cause).slice(-3)] : []))
  const killedTimes = (length: number) =>
    until(
      () => world.kills.length,
      (count) => count >= length,
    )
  world.add('refused')
  await killedTimes(3)
  expect(causes()).toEqual(['500'])
  status = 403
  await killedTimes(world.kills.length + 2)
  expect(causes()).toEqual(['500', '403'])
  status = 200
  await world.allEnded()
})

test('one that comes in the middle of a round does not wait either', async () => {
  let addedAt = 0
  let endedAt = 0
  await using world = killsAnsweredBy((id) => {
    if (id === 'new') {
      endedAt = performance.now()
    } else if (world.kills.length === LONG_PAUSES) {
      world.add('new') // there is no pause that it could end
      addedAt = performance.now()
    }
    return endedAt === 0 ? 403 : 200
  })
  world.add('refused')
  await world.allEnded()
  expect(addedAt).toBeGreaterThan(0)
  expect(endedAt - addedAt).toBeLessThan(2_500)
})

test('many of them do not wait ever longer because a call fails now and then', async () => {
  let calls = 0
  await using world = killsAnsweredBy(() => (++calls % 3 === 0 ? 502 : 200))
  for (let i = 0; i < 20; i++) world.add(`orphan-${i}`)
  await world.allEnded(15_000) // ten failures, each of which would double the pause: half a minute
  expect(new Set(world.kills).size).toBe(20)
})

test('a round that changes nothing writes nothing', async () => {
  let isHelpful = false
  await using world = killsAnsweredBy(() => (isHelpful ? 200 : 403))
  world.add('refused')
  await until(
    () => world.kills.length,
    (count) => count === 5,
  )
  expect(world.written.length).toBe(1)
  isHelpful = true
  world.add('last')
  await world.allEnded()
})

test('nothing is killed before that may be, and what another replica leaves is killed, once', async () => {
  const kills: string[] = []
  const { log } = memoryLog()
  const removed: string[] = []
  const tries: PromiseWithResolvers<void>[] = []
  const kill = async (id: string) => {
    tries.push(Promise.withResolvers<void>())
    await tries.at(-1)!.promise
    return kills.push(id) > 0
  }
  const orphans = new Orphans(poolOf({ kill }), log)
  const keeper: OrphanKeeper = {
    found: [],
    onFound: () => {},
    add: () => {},
    remove: (some) => removed.push(...some.map(({ handle_id }) => handle_id)),
  }
  orphans.keepIn(keeper)
  const orphan = { handle_id: 'mine', is_taken: true, since: Date.now() }
  orphans.add(orphan)
  const tried = (count: number) =>
    until(
      () => tries.length,
      (length) => length === count,
    )
  await tried(1)
  tries[0]!.reject(new CallFailed('another replica has taken over, perhaps'))
  await tried(2) // after a pause
  expect([kills, removed]).toEqual([[], []])
  keeper.onFound([orphan, { ...orphan, handle_id: 'left' }])
  tries[1]!.resolve()
  await tried(3)
  tries[2]!.resolve()
  await until(
    () => removed,
    ({ length }) => length === 2,
  )
  expect([kills, removed]).toEqual([
    ['mine', 'left'],
    ['mine', 'left'],
  ])
})

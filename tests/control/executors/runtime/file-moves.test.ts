/**
 * Goal: moves are shared, bounded and end when nobody waits for them. Method: a source and a target that do as they are told.
 */
import { afterEach, expect, test } from 'bun:test'
import { FilesChanged, SourceFailed } from '../../../../control/executors/runtime/bundle-relay.ts'
import { FileMoves, MAX_MOVES, MAX_REMEMBERED_BUNDLES } from '../../../../control/executors/runtime/file-moves.ts'
import { PoolMember } from '../../../../control/executors/runtime/pool-member.ts'
import { CallFailed } from '../../../../shared/http/client.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { memoryKeeper } from '../../../support/memory-keeper.ts'
import { until } from '../../../support/until.ts'

const hashOf = (name: string) => new Bun.CryptoHasher('sha256').update(name).digest('hex')

const servers: Bun.Server<unknown>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.stop(true)
})

function member(name: string, fetch: (request: Request, url: URL) => Response | Promise<Response>): PoolMember {
  const server = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1', idleTimeout: 0 },
    fetch: (request) => fetch(request, new URL(request.url)),
  })
  servers.push(server)
  return new PoolMember(
    { name, url: `http://127.0.0.1:${server.port}`, labels: {} },
    { token: undefined, keeper: memoryKeeper() },
    true,
  )
}

/** A source that says what it is asked for, and a target that keeps each bundle until it is told to go on. */
function start({ stallMs, body = () => new Response('bundle') }: { stallMs?: number; body?: () => Response } = {}) {
  const asked: string[] = []
  const puts: { sha256: string; isOver: boolean }[] = []
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const from = member('from', (_, { searchParams }) => {
    const file = searchParams.get('file')!
    if (searchParams.get('only') === null) return body()
    asked.push(file)
    return Response.json({ bytes: 1, files: 1, sha256: hashOf(file) })
  })
  const to = member('to', async (request, { pathname }) => {
    const put = { sha256: pathname.split('/').at(-1)!, isOver: false }
    puts.push(put)
    request.signal.addEventListener('abort', () => {
      put.isOver = true
    })
    await released
    await request.text().catch(() => '')
    if (put.sha256 === hashOf('changed')) return Response.json({ error: { code: 'x', message: 'y' } }, { status: 400 })
    return Response.json({ sha256: put.sha256 }, { status: 201 })
  })
  const moves = new FileMoves(silentLog(), stallMs)
  const place = (file: string) => ({ member: from, files: { task_id: 't', file } })
  const move = (file: string, signal = new AbortController().signal) =>
    moves.move(place(file), to, hashOf(file), { traceId: 't', signal, onBegin: () => {} })
  const digest = (file: string) => moves.digest(place(file), 't')
  return { asked, puts, release, move, digest }
}

const count = (puts: readonly unknown[], wanted: number) =>
  until(
    () => puts.length,
    (length) => length === wanted,
  )

/** Its connection is closed, which may be seen after that of the next one is there. */
const isOver = (put: { readonly isOver: boolean }) =>
  until(
    () => put.isOver,
    (isOver) => isOver,
  )

test(`no more than ${MAX_MOVES} moves run at the same time, and one that is given up makes room`, async () => {
  const { puts, release, move } = start()
  const leaving = new AbortController()
  const first = move('first', leaving.signal).catch((error) => error)
  await count(puts, 1)
  const others = Array.from({ length: MAX_MOVES + 1 }, (_, i) => move(`other ${i}`))
  await count(puts, MAX_MOVES)
  const waiting = new AbortController()
  const never = move('never', waiting.signal).catch((error) => error)
  waiting.abort()
  expect(await never).toBeInstanceOf(Error)
  leaving.abort()
  expect(await first).toBeInstanceOf(Error)
  await count(puts, MAX_MOVES + 1)
  await isOver(puts[0]!)
  release()
  await Promise.all(others)
  expect(puts.map(({ sha256 }) => sha256)).not.toContain(hashOf('never'))
})

test('attempts share a move, which ends with the last of them', async () => {
  const { puts, release, move } = start()
  const callers = [new AbortController(), new AbortController()]
  const shared = callers.map(({ signal }) => move('a', signal).catch((error) => error))
  await count(puts, 1)
  callers[0]!.abort()
  expect(await shared[0]).toBeInstanceOf(Error)
  expect(puts[0]!.isOver).toBe(false)
  callers[1]!.abort()
  expect(await shared[1]).toBeInstanceOf(Error)
  await isOver(puts[0]!)
  const again = move('a')
  await count(puts, 2)
  release()
  await again
})

test('a hash is asked for once, and the last thousand are remembered', async () => {
  const { asked, digest } = start()
  const [first, second] = await Promise.all([digest('0'), digest('0')])
  expect([first, asked]).toEqual([second!, ['0']])
  for (let i = 1; i < MAX_REMEMBERED_BUNDLES; i++) await digest(String(i))
  await digest('0')
  expect(asked.length).toBe(MAX_REMEMBERED_BUNDLES)
  await digest('one more')
  await digest('0')
  expect(asked.length).toBe(MAX_REMEMBERED_BUNDLES + 2)
})

test('files that have changed are told, and their hash is asked for again', async () => {
  const { asked, release, move, digest } = start()
  release()
  await digest('changed')
  await expect(move('changed')).rejects.toBeInstanceOf(FilesChanged)
  await digest('changed')
  expect(asked).toEqual(['changed', 'changed'])
})

test('a move without a byte is broken off, and says who is to blame', async () => {
  const silent = () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }))
  const ofSource = start({ stallMs: 50, body: silent })
  await expect(ofSource.move('a')).rejects.toBeInstanceOf(SourceFailed)
  const endless = () =>
    new Response(
      new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(1024 ** 2)),
      }),
    )
  const ofTarget = start({ stallMs: 3_000, body: endless }) // the source may be slow, too
  const refusal = await ofTarget.move('a').catch((error) => error)
  expect(refusal).toBeInstanceOf(CallFailed)
  expect((refusal as CallFailed).message).toContain('took no byte of a bundle')
})

/** What many connections receive at once: bounds, and turns for all of them. */
import { expect, test } from 'bun:test'
import type { Socket } from 'bun'
import { Endpoint, MAX_WAITING_BYTES, MAX_WAITING_PIECES } from '../../../runtime/egress/endpoint.ts'
import { MAX_TURN_BYTES, Pace, type Paced, RESUMED_IN_TURN } from '../../../runtime/egress/pace.ts'
import { relayAnswer } from '../../../runtime/egress/relay.ts'

const MIB = 1024 * 1024

/** Sockets of which each receives a mebibyte as long as it is read. */
class Crowd {
  readonly received: number[]
  readonly isRead: boolean[]
  readonly pace = new Pace((work) => void this.#turns.push(work))
  readonly #sockets: Paced[]
  readonly #turns: (() => void)[] = []

  constructor(count: number) {
    this.received = Array.from({ length: count }, () => 0)
    this.isRead = Array.from({ length: count }, () => true)
    this.#sockets = this.isRead.map((_, i) => ({
      hold: () => this.#set(i, false),
      release: () => this.#set(i, true),
    }))
    for (const socket of this.#sockets) this.pace.opened(socket)
  }

  #set(i: number, isRead: boolean): void {
    this.isRead[i] = isRead
  }

  socket(i: number): Paced {
    return this.#sockets[i]!
  }

  /** What is received in one turn, in bytes. */
  turn(): number {
    let bytes = 0
    for (const [i, socket] of this.#sockets.entries()) {
      if (!this.isRead[i]) continue
      bytes += MIB
      this.received[i]! += MIB
      this.pace.count(socket, MIB)
    }
    for (const work of this.#turns.splice(0)) work()
    return bytes
  }
}

test('a turn has a bound, and all sockets come round', () => {
  const crowd = new Crowd(100)
  for (let i = 0; i < 130; i++) expect(crowd.turn()).toBeLessThanOrEqual(MAX_TURN_BYTES)
  expect(Math.min(...crowd.received)).toBeGreaterThan(0)
  expect(Math.max(...crowd.received) - Math.min(...crowd.received)).toBeLessThanOrEqual(2 * MIB)
})

test('sockets that are silent are read again, a number of them in each turn', () => {
  const crowd = new Crowd(2 * RESUMED_IN_TURN)
  crowd.pace.count(crowd.socket(0), MAX_TURN_BYTES)
  expect(crowd.isRead).not.toContain(true)
  crowd.turn()
  expect(crowd.isRead.filter(Boolean)).toHaveLength(RESUMED_IN_TURN)
})

test('a socket that is removed is not read again, and one that resumes waits for its turn', () => {
  const crowd = new Crowd(2)
  crowd.pace.count(crowd.socket(0), MAX_TURN_BYTES)
  crowd.pace.remove(crowd.socket(0))
  crowd.pace.resume(crowd.socket(1))
  expect(crowd.isRead).toEqual([false, false])
  crowd.turn()
  expect(crowd.isRead).toEqual([false, true])
  crowd.pace.resume(crowd.socket(0))
  expect(crowd.isRead).toEqual([true, true])
})

/** A socket that takes as many bytes as it has room for. */
function fakeSocket(room: number) {
  const calls: string[] = []
  const socket = {
    data: undefined as Endpoint | undefined,
    pause: () => void calls.push('pause'),
    resume: () => void calls.push('resume'),
    write: (bytes: Uint8Array) => Math.min(bytes.length, socket.room),
    terminate: () => {},
    room,
  }
  const handlers = Endpoint.handlers(() => {})
  const endpoint = new Endpoint(socket as unknown as Socket<Endpoint | undefined>)
  const of = socket as unknown as Socket<Endpoint | undefined>
  return {
    endpoint,
    calls,
    receive: (text: string) => handlers.data!(of, Buffer.from(text)),
    drain: (more: number) => {
      socket.room = more
      handlers.drain!(of)
    },
  }
}

test('a server waits as long as its client takes nothing', async () => {
  const [from, to] = [fakeSocket(0), fakeSocket(1)]
  void relayAnswer(from.endpoint, to.endpoint, () => true)
  from.receive('abc')
  await Bun.sleep(0)
  expect(from.calls).toEqual(['pause'])
  to.drain(2)
  await Bun.sleep(0)
  expect(from.calls).toEqual(['pause', 'resume'])
  from.receive('de')
  await Bun.sleep(0)
  expect(from.calls).toEqual(['pause', 'resume'])
  for (const { endpoint } of [from, to]) endpoint.destroy()
})

test.each([
  ['bytes', ['x'.repeat(MAX_WAITING_BYTES - 1), 'x']],
  ['pieces', Array<string>(MAX_WAITING_PIECES).fill('x')],
])('a sender waits once there are too many %s that nobody reads', async (_, pieces) => {
  const from = fakeSocket(0)
  for (const [i, piece] of pieces.entries()) {
    expect(from.calls).toEqual([])
    from.receive(piece)
    expect(from.calls.length).toBe(i === pieces.length - 1 ? 1 : 0)
  }
  for (const piece of pieces) expect(String(await from.endpoint.read())).toBe(piece)
  expect(from.calls).toEqual(['pause'])
  void from.endpoint.read()
  expect(from.calls).toEqual(['pause', 'resume'])
  from.endpoint.destroy()
})

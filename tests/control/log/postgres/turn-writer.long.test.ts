/**
 * Goal: those who wait while the database is away are told so, and those who come once it is back are not. Method: a
 * database of the test that answers when it is told to. Takes as long as an answer may take.
 */
import { expect, test } from 'bun:test'
import { DatabaseFault } from '../../../../control/log/postgres/database-fault.ts'
import { Lease } from '../../../../control/log/postgres/lease.ts'
import { TurnWriter } from '../../../../control/log/postgres/turn-writer.ts'
import type { TurnWrites } from '../../../../control/log/postgres/turn-writes.ts'
import { UnkeptWrites } from '../../../../control/log/postgres/unkept-writes.ts'
import { silentLog } from '../../../../shared/logs/log.ts'
import { memoryLog } from '../../../support/memory-log.ts'
import { graph } from '../../../support/shared-rows.ts'
import { until } from '../../../support/until.ts'

test('what is asked to be kept as soon as the database is back is kept, also after others waited in vain', async () => {
  const turns: PromiseWithResolvers<void>[] = []
  const rows = {
    turn() {
      const turn = Promise.withResolvers<void>()
      turns.push(turn)
      return turn.promise
    },
  }
  const writes = new UnkeptWrites()
  const writer = new TurnWriter({ rows, writes, encode: () => {}, lease: new Lease(60_000), log: silentLog() })
  try {
    const under = writes.addGraph(graph(1)).promise.catch((error) => error)
    writer.run(true)
    await until(
      () => turns.length,
      (count) => count === 1,
    )
    const later = writes.addGraph(graph(2)).promise.catch((error) => error)
    const waiting = Promise.resolve(writer.kept()).catch((error) => error) // for the turn after the one that hangs
    expect(await under).toMatchObject({ status: 503 })
    expect([await waiting, await later]).toMatchObject([{ status: 503 }, { status: 503 }])

    let kept: Promise<unknown> | undefined
    writer.onWritableAgain = () => {
      writes.addGraph(graph(3)).promise.catch(() => {})
      kept = writer.kept()!.then(
        () => 'kept',
        (error) => error,
      )
    }
    turns[0]!.resolve()
    await until(
      () => turns.length,
      (count) => count === 2,
    )
    turns[1]!.resolve()
    expect(await kept).toBe('kept')
  } finally {
    writer.stop()
  }
})

test('callers who send the next graph once they are answered join those who wait', async () => {
  const turns: (PromiseWithResolvers<void> & { readonly graphs: readonly number[] })[] = []
  const rows = {
    turn({ graphs }: TurnWrites) {
      const turn = { ...Promise.withResolvers<void>(), graphs: graphs.map(({ ordinal }) => ordinal) }
      turns.push(turn)
      return turn.promise
    },
  }
  const begun = (count: number) =>
    until(
      () => turns.length,
      (length) => length === count,
    )
  const writes = new UnkeptWrites()
  const writer = new TurnWriter({ rows, writes, encode: () => {}, lease: new Lease(60_000), log: silentLog() })
  const submit = (ordinal: number) => {
    const kept = writes.addGraph(graph(ordinal)).promise
    writer.run(true)
    return kept
  }
  try {
    const first = submit(1)
    await begun(1)
    const second = submit(2)
    turns[0]!.resolve()
    await first
    for (let i = 0; i < 100; i++) await Promise.resolve() // longer than a turn needs to begin
    const third = submit(3)
    await begun(2)
    const fourth = submit(4)
    turns[1]!.resolve()
    await Promise.all([second, third])
    await begun(3) // though nobody sends another one
    turns[2]!.resolve()
    await fourth
    expect(turns.map(({ graphs }) => graphs)).toEqual([[1], [2, 3], [4]])
  } finally {
    writer.stop()
  }
})

test('each kind of fault is logged once, also one that was there before the database counted as away', async () => {
  const begun = Promise.withResolvers<(kind: 'contended' | 'away') => void>()
  const rows = {
    turn(_: unknown, onFault?: (fault: DatabaseFault) => void) {
      begun.resolve((kind) => onFault?.(new DatabaseFault(kind, 'said so', undefined)))
      return new Promise<void>(() => {})
    },
  }
  const { lines, log } = memoryLog()
  const writes = new UnkeptWrites()
  const writer = new TurnWriter({ rows, writes, encode: () => {}, lease: new Lease(60_000), log })
  try {
    const under = writes.addGraph(graph(1)).promise.catch((error) => error)
    writer.run(true)
    const fail = await begun.promise
    fail('contended')
    fail('away')
    expect(await under).toMatchObject({ status: 503 })
    for (const kind of ['contended', 'away', 'contended'] as const) fail(kind)
    expect(lines().map(({ cause }) => cause)).toEqual([
      'the database is not reached: said so',
      'the database waits for a lock that somebody holds: said so',
    ])
  } finally {
    writer.stop()
  }
})

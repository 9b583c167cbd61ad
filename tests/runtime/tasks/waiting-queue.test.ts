/**
 * Goal: who starts next is the first that fits, nobody is overtaken more often than promised, and nobody waits for the quota
 * of another. Method: small scenes; random schedules beside a queue by the letter of the rules; 10,000 tasks.
 */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Asking, type Hold, Ledger } from '../../../runtime/ledger/ledger.ts'
import { MAX_OVERTAKEN, WaitingQueue, type WaitingTask } from '../../../runtime/tasks/waiting-queue.ts'
import { randomAsking, randomCapacity, randomQuotas } from '../../support/ledger.ts'
import { NaiveWaitingQueue } from '../../support/naive-waiting-queue.ts'

const AT = '2026-01-02T03:04:05.678Z'
const task = (task_id: string, memory_bytes = 0, tenant?: string): WaitingTask => ({
  task_id,
  tenant,
  reservation: { task_slots: 1, ...(memory_bytes > 0 && { memory_bytes }) },
})

/** A queue whose tasks run when they are taken, until they are ended. */
class Scene {
  readonly ledger: Ledger
  readonly queue: WaitingQueue<WaitingTask>

  constructor(
    capacity: ConstructorParameters<typeof Ledger>[0],
    quotas: ConstructorParameters<typeof Ledger>[1] = new Map(),
    maxOvertaken = MAX_OVERTAKEN,
    hasUser = true,
  ) {
    this.ledger = new Ledger(capacity, quotas, () => hasUser)
    this.queue = new WaitingQueue(this.ledger, maxOvertaken)
  }

  add(...tasks: WaitingTask[]): this {
    for (const waiting of tasks) this.queue.add(waiting)
    return this
  }

  /** Starts all that may start, and says who, in order. */
  start(): string[] {
    const started: string[] = []
    for (let next = this.queue.takeNext(); next !== undefined; next = this.queue.takeNext()) {
      this.ledger.reserve({ ...next, reserved_at: AT })
      started.push(next.task_id)
    }
    return started
  }

  /** Ends some, then starts all that may start. */
  end(...ids: string[]): string[] {
    for (const id of ids) expect(this.ledger.release(id)).toBeDefined()
    return this.start()
  }
}

describe('the next to start', () => {
  test('is the first that came, while there are slots', () => {
    const scene = new Scene({ task_slots: 2 }).add(task('1'), task('2', 5), task('3'), task('4', 5))
    expect(scene.start()).toEqual(['1', '2'])
    expect(scene.end('2')).toEqual(['3'])
    expect(scene.end('1', '3')).toEqual(['4'])
    expect(scene.end('4')).toEqual([])
    expect(scene.queue.length).toBe(0)
  })

  test('is the first that fits, where others do not', () => {
    const scene = new Scene({ task_slots: 4, memory_bytes: 10 }).add(task('1', 6), task('2', 6), task('3', 4))
    expect(scene.start()).toEqual(['1', '3'])
    expect(scene.add(task('4', 1)).start()).toEqual([])
    expect(scene.add(task('5')).start()).toEqual(['5'])
    expect(scene.end('1')).toEqual(['2'])
    expect(scene.end('3')).toEqual(['4'])
  })

  test('is none that was taken out', () => {
    const scene = new Scene({ task_slots: 1 }).add(task('1'), task('2'), task('3'), task('4'))
    expect(scene.queue.remove('1')?.task_id).toBe('1')
    expect(scene.queue.remove('3')?.task_id).toBe('3')
    expect(scene.queue.remove('3')).toBeUndefined()
    expect([scene.queue.has('3'), scene.queue.has('2'), scene.queue.length]).toEqual([false, true, 2])
    expect(scene.start()).toEqual(['2'])
    expect(scene.end('2')).toEqual(['4'])
  })

  test('is the one with the highest priority that fits, and stands behind its equals', () => {
    const scene = new Scene({ task_slots: 1, memory_bytes: 10 }).add(
      { ...task('low'), priority: -1 },
      task('1'),
      { ...task('high'), priority: 7 },
      task('2'),
      { ...task('higher'), priority: 7 },
    )
    const order: string[] = []
    for (let running = scene.start(); running.length > 0; running = scene.end(...running)) order.push(...running)
    expect(order).toEqual(['high', 'higher', '1', '2', 'low'])
  })

  test('cannot wait twice', () => {
    const scene = new Scene({ task_slots: 1 }).add(task('1'))
    expect(() => scene.add(task('1'))).toThrow('task 1 waits already')
  })
})

describe('a large task', () => {
  test('is overtaken so often and no more', () => {
    const scene = new Scene({ task_slots: 2, memory_bytes: 10 }).add(task('first', 1), task('large', 10))
    expect(scene.start()).toEqual(['first'])
    let running = 'first'
    for (let i = 0; i < MAX_OVERTAKEN; i++) {
      // Always one that ends and one that comes, never both slots free.
      expect(scene.add(task(`s${i}`, 1)).start()).toEqual([`s${i}`])
      expect(scene.end(running)).toEqual([])
      running = `s${i}`
    }
    expect(scene.add(task('late', 1), task('later')).start()).toEqual([])
    expect(scene.end(running)).toEqual(['large', 'later'])
    expect(scene.end('large')).toEqual(['late'])
  })

  test('is not overtaken by those who came before it', () => {
    const scene = new Scene({ task_slots: 3, memory_bytes: 10 }, new Map(), 1)
    scene.add(task('first', 5), task('middle', 6), task('large', 10), task('small', 1))
    expect(scene.start()).toEqual(['first', 'small'])
    expect(scene.add(task('small2', 1)).start()).toEqual([]) // middle and large are due
    expect(scene.end('first')).toEqual(['middle'])
    expect(scene.end('small')).toEqual([])
    expect(scene.end('middle')).toEqual(['large'])
    expect(scene.end('large')).toEqual(['small2'])
  })

  test('that is taken out holds up nobody any more', () => {
    const scene = new Scene({ task_slots: 3, memory_bytes: 10 }, new Map(), 0)
    scene.add(task('first', 5), task('large', 10), task('small', 1))
    expect(scene.start()).toEqual(['first'])
    scene.queue.remove('large')
    expect(scene.start()).toEqual(['small'])
  })
})

describe('a task that waits for the quota of its tenant', () => {
  const quotas = new Map([['a', { task_slots: 2, memory_bytes: 4 }]])

  test('holds up its own, and nobody else', () => {
    const scene = new Scene({ task_slots: 9, memory_bytes: 9 }, quotas, 1)
    scene.add(task('a1', 3, 'a'), task('a2', 4, 'a'), task('a3', 1, 'a'), task('b1', 1, 'b'), task('c1'))
    expect(scene.start()).toEqual(['a1', 'a3', 'b1', 'c1'])
    scene.end('a3')
    expect(scene.add(task('a4', 1, 'a'), task('b2', 1, 'b')).start()).toEqual(['b2']) // a2 is due
    expect(scene.end('a1')).toEqual(['a2'])
    expect(scene.end('a2')).toEqual(['a4'])
  })

  test('is not counted as overtaken by others, nor are those behind it', () => {
    const scene = new Scene({ task_slots: 9, memory_bytes: 9 }, quotas, 2)
    scene.add(task('a1', 4, 'a'), task('a2', 2, 'a'))
    scene.start()
    for (const id of ['b1', 'b2', 'b3']) expect(scene.add(task(id, 1, 'b')).start()).toEqual([id])
    // Had these been counted, nothing could pass a2, which the capacity holds now.
    scene.ledger.release('a1')
    scene.ledger.restore({ ...task('big', 6), reserved_at: AT })
    expect(scene.add(task('c1'), task('c2')).start()).toEqual(['c1', 'c2'])
    expect(scene.add(task('c3')).start()).toEqual([])
    expect(scene.end('big')).toEqual(['a2', 'c3'])
  })

  test('waits its turn for the capacity once the quota has room', () => {
    const scene = new Scene({ task_slots: 3, memory_bytes: 4 }, quotas, 0)
    scene.add(task('a1', 4, 'a'), task('a2', 4, 'a'), task('b1'), task('b2', 4, 'b'), task('b3'))
    expect(scene.start()).toEqual(['a1', 'b1'])
    expect(scene.end('b1')).toEqual([]) // b2 is held by the capacity, and due
    expect(scene.end('a1')).toEqual(['a2'])
    expect(scene.end('a2')).toEqual(['b2', 'b3'])
  })
})

test('of tasks alike, those behind one that their lane waits for are not counted as overtaken by others', () => {
  const quotas = new Map([['a', { task_slots: 9, memory_bytes: 4, pids: 4 }]])
  const scene = new Scene({ task_slots: 9, memory_bytes: 10, pids: 10 }, quotas, 1)
  const own = (task_id: string, memory_bytes: number, pids: number): WaitingTask => ({
    task_id,
    tenant: 'a',
    reservation: { task_slots: 1, memory_bytes, pids },
  })
  const runs = (task: WaitingTask) => scene.ledger.restore({ ...task, reserved_at: AT })
  runs(own('pids', 0, 3))
  runs(task('memory', 8))
  scene.add(own('before', 3, 2), own('large', 4, 0), own('behind', 3, 2))
  expect(scene.add(task('b1')).start()).toEqual(['b1']) // overtakes large, which the capacity holds: it is due
  scene.ledger.release('pids')
  runs(own('little', 1, 0)) // now the quota holds large, and the capacity those beside it
  expect(scene.add(task('b2')).start()).toEqual(['b2']) // overtakes before, but not behind
  scene.queue.remove('before')
  scene.queue.remove('large')
  expect(scene.add(task('b3')).start()).toEqual(['b3']) // the first to overtake behind
  expect(scene.add(task('b4')).start()).toEqual([])
})

describe('over any schedule', () => {
  const step = fc.oneof(
    {
      weight: 5,
      arbitrary: fc
        .tuple(randomAsking, fc.constantFrom(undefined, 0, 1, -100, 100))
        .map(([asking, priority]) => ({ do: 'add' as const, asking, priority })),
    },
    { weight: 4, arbitrary: fc.constant({ do: 'start' as const }) },
    { weight: 3, arbitrary: fc.nat().map((pick) => ({ do: 'end' as const, pick })) },
    { weight: 1, arbitrary: fc.nat().map((pick) => ({ do: 'remove' as const, pick })) },
  )
  const schedule = fc.array(step, { minLength: 1, maxLength: 120 })

  test('it does what the rules say, never over capacity, nobody overtaken too often, and all get their turn', () => {
    fc.assert(
      fc.property(randomCapacity, randomQuotas, fc.nat(3), schedule, (capacity, quotas, maxOvertaken, steps) => {
        const ledger = new Ledger(capacity, quotas)
        const queue = new WaitingQueue<WaitingTask>(ledger, maxOvertaken)
        const rules = new NaiveWaitingQueue(ledger, maxOvertaken)
        const running: string[] = []
        /** Whether one was started. */
        const startOne = (): boolean => {
          const expected = rules.takeNext()
          const next = queue.takeNext()
          expect(next?.task_id).toBe(expected?.task_id)
          expect(queue.length).toBe(rules.waiting.length)
          expect(rules.waiting.every(({ overtaken }) => overtaken <= maxOvertaken)).toBe(true)
          if (next === undefined) return false
          ledger.reserve({ ...next, reserved_at: AT }) // which throws if it does not fit
          running.push(next.task_id)
          return true
        }
        for (const [i, step] of steps.entries()) {
          if (step.do === 'add' && ledger.shortfallOf(step.asking) === null) {
            const { priority } = step
            const waiting = { ...step.asking, task_id: String(i), ...(priority !== undefined && { priority }) }
            queue.add(waiting)
            rules.add(waiting)
          } else if (step.do === 'start') {
            startOne()
          } else if (step.do === 'end' && running.length > 0) {
            ledger.release(running.splice(step.pick % running.length, 1)[0]!)
          } else if (step.do === 'remove') {
            const id = String(step.pick % (i + 1))
            expect(queue.remove(id)).toEqual(rules.remove(id)!)
          }
        }
        // What runs ends, oldest first; with nothing left running the oldest that waits must start.
        while (queue.length > 0) {
          while (startOne());
          if (running.length === 0) expect(queue.length).toBe(0)
          else ledger.release(running.shift()!)
        }
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('with 10,000 that wait', () => {
  const COUNT = 10_000

  /** A ledger that counts how often it is asked. */
  class AskedLedger extends Ledger {
    asked = 0
    override holdOn(asking: Asking): Hold | null {
      this.asked++
      return super.holdOn(asking)
    }
  }

  test('a search asks as often as there are different reservations, and not at all without a free slot', () => {
    const ledger = new AskedLedger({ task_slots: 2, memory_bytes: 10 })
    const queue = new WaitingQueue<WaitingTask>(ledger)
    ledger.reserve({ ...task('first', 10), reserved_at: AT })
    for (let i = 0; i < COUNT; i++) queue.add(task(`t${i}`, 1 + (i % 10), `tenant ${i}`))
    ledger.asked = 0
    expect(queue.takeNext()).toBeUndefined()
    expect(ledger.asked).toBe(10)
    ledger.reserve({ ...task('second'), reserved_at: AT })
    ledger.asked = 0
    expect(queue.takeNext()).toBeUndefined()
    expect(ledger.asked).toBe(0)
  })

  test('all get their turn, in order among those alike', () => {
    const scene = new Scene({ task_slots: 4, memory_bytes: 100 })
    for (let i = 0; i < COUNT; i++) scene.add(task(`t${i}`, 1 + (i % 97)))
    const running = scene.start()
    const started = [...running]
    while (running.length > 0) {
      const next = scene.end(running.shift()!)
      running.push(...next)
      started.push(...next)
    }
    expect(new Set(started).size).toBe(COUNT)
    const alike = started.filter((id) => Number(id.slice(1)) % 97 === 96).map((id) => Number(id.slice(1)))
    expect(alike).toEqual(alike.toSorted((a, b) => a - b))
  })
})

describe('what a waiting task waits for', () => {
  test('is what is short of its reservation', () => {
    const scene = new Scene({ task_slots: 2, memory_bytes: 100 }).add(
      task('runs', 80),
      task('large', 50),
      task('small'),
    )
    expect(scene.start()).toEqual(['runs', 'small'])
    scene.add(task('later'))
    expect(['large', 'later', 'runs', 'none'].map((id) => scene.queue.waitsFor(id))).toEqual([
      { resource: 'task_slots' },
      { resource: 'task_slots' },
      undefined,
      undefined,
    ])
    scene.queue.remove('later')
    scene.end('small')
    expect(scene.queue.waitsFor('large')).toEqual({ resource: 'memory_bytes' })
  })

  test('is the quota of its tenant', () => {
    const quotas = new Map([['t', { task_slots: 1 }]])
    const scene = new Scene({ task_slots: 4 }, quotas).add(task('runs', 0, 't'), task('waits', 0, 't'))
    expect(scene.start()).toEqual(['runs'])
    expect(scene.queue.waitsFor('waits')).toEqual({ resource: 'task_slots', tenant: 't' })
  })

  test('is a user for its sandbox', () => {
    const scene = new Scene({ task_slots: 4 }, new Map(), MAX_OVERTAKEN, false)
    scene.add({ ...task('waits'), isSandboxed: true }, task('other'))
    expect(scene.start()).toEqual(['other'])
    expect(scene.queue.waitsFor('waits')).toEqual({ resource: 'sandbox_uid' })
  })

  test('is its turn where there is room for it', () => {
    const scene = new Scene({ task_slots: 2, memory_bytes: 100 }, new Map(), 0).add(task('runs', 80), task('large', 50))
    expect(scene.start()).toEqual(['runs'])
    scene.add(task('small', 10))
    expect(scene.start()).toEqual([])
    expect(scene.queue.waitsFor('small')).toEqual({ resource: 'turn' })
  })
})

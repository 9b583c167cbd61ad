/** Goal: nothing that is ready is lost, doubled or overtaken. Method: random pushes and shifts beside a plain array. */
import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Fifo } from '../../../control/scheduler/fifo.ts'
import { Places } from '../../../control/scheduler/places.ts'
import { READY_QUEUE_CAPACITY, ReadyQueue } from '../../../control/scheduler/ready-queue.ts'
import type { Task } from '../../../control/task/graph.ts'
import { graphOf } from '../../support/graph.ts'

/** How many to push, then how many to shift; large enough to fill the queue and to go round it. */
const bursts = fc.array(fc.tuple(fc.nat(1_500), fc.nat(1_500)), { maxLength: 12 })

describe('the ready queue', () => {
  const { tasks } = graphOf(Array.from({ length: 20_000 }, (_, i) => ({ id: `t${i}`, type: 'test' })))

  test('gives tasks in the order in which they came, and counts those that fit', () => {
    fc.assert(
      fc.property(bursts, (rounds) => {
        const queue = new ReadyQueue()
        let pushed = 0
        let shifted = 0
        for (const [pushes, shifts] of rounds) {
          for (let i = 0; i < pushes; i++) queue.push(tasks[pushed++]!)
          expect(queue.length).toBe(Math.min(pushed - shifted, READY_QUEUE_CAPACITY))
          for (let i = 0; i < shifts; i++) {
            const expected = shifted < pushed ? tasks[shifted++] : undefined
            if (queue.shift() !== expected) throw new Error(`another task came than number ${shifted - 1}`)
          }
          expect(queue.length).toBe(Math.min(pushed - shifted, READY_QUEUE_CAPACITY))
        }
      }),
      { numRuns: 50 },
    )
  })

  test('gives those with the highest priority first, in the order in which they came', () => {
    const steps = fc.array(
      fc.oneof(fc.constantFrom(-100, 0, 0, 1, 100), fc.constant('shift'), fc.constant('withdraw')),
      { minLength: 1, maxLength: 200 },
    )
    fc.assert(
      fc.property(steps, (given) => {
        const { tasks: own } = graphOf(
          given.map((priority, i) => ({
            id: `p${i}`,
            type: 'test',
            ...(typeof priority === 'number' && { priority }),
          })),
        )
        const queue = new ReadyQueue()
        const waiting: Task[] = []
        for (const [i, step] of given.entries()) {
          const next = waiting.toSorted((a, b) => b.priority - a.priority)[0]
          if (typeof step === 'number') {
            queue.push(own[i]!)
            waiting.push(own[i]!)
            continue
          }
          const gone = step === 'shift' ? next : waiting[Math.floor(waiting.length / 2)]
          if (step === 'shift') expect(queue.shift()).toBe(gone)
          else if (gone !== undefined) queue.withdraw(gone)
          if (gone !== undefined) waiting.splice(waiting.indexOf(gone), 1)
          expect(queue.length).toBe(waiting.length)
        }
      }),
    )
  })

  test('gives the tenants turns within a priority, and the tasks of each in the order in which they came', () => {
    const named = (tenant: unknown) => ({ type: 'runtime', params: { control_context: { tenant } } })
    const definitions = [
      ...[named('a'), named('a'), named('a'), named('b'), named('c')],
      ...[named(null), named({ $param: 'who' }), { type: 'runtime' }, { ...named('a'), type: 'test' }],
    ]
    const kinds = fc.record({ definition: fc.nat(definitions.length - 1), priority: fc.constantFrom(0, 0, 0, 1) })
    const steps = fc.array(fc.oneof(kinds, fc.constant('shift'), fc.nat(200)), { minLength: 1, maxLength: 200 })
    fc.assert(
      fc.property(steps, (given) => {
        const { tasks: own } = graphOf(
          given.map((step, i) =>
            typeof step === 'object'
              ? { id: `f${i}`, ...definitions[step.definition]!, priority: step.priority }
              : { id: `f${i}`, type: 'test' },
          ),
        )
        const nameOf = (i: number) => {
          const { definition } = given[i] as { definition: number }
          return definition < 3 ? 'a' : ['b', 'c'][definition - 3]
        }
        const queue = new ReadyQueue()
        /** The tenants in the order of their turns, by priority. */
        const lines: Record<number, { name: string | undefined; waiting: Task[] }[]> = { 1: [], 0: [] }
        let size = 0
        for (const [i, step] of given.entries()) {
          if (typeof step === 'object') {
            const line = lines[step.priority]!
            const tenant = line.find(({ name }) => name === nameOf(i))
            if (tenant === undefined) line.push({ name: nameOf(i), waiting: [own[i]!] })
            else tenant.waiting.push(own[i]!)
            queue.push(own[i]!)
            size++
          } else if (step === 'shift') {
            const line = [lines[1]!, lines[0]!].find(({ length }) => length > 0)
            const tenant = line?.shift()
            expect(queue.shift()).toBe(tenant?.waiting.shift())
            if (tenant === undefined) continue
            if (tenant.waiting.length > 0) line!.push(tenant)
            size--
          } else {
            const all = [...lines[1]!, ...lines[0]!].flatMap(({ waiting }) => waiting)
            const gone = all[step % Math.max(1, all.length)]
            if (gone === undefined) continue
            queue.withdraw(gone)
            size--
            const line = lines[gone.priority]!
            const at = line.findIndex(({ waiting }) => waiting.includes(gone))
            const { waiting } = line[at]!
            waiting.splice(waiting.indexOf(gone), 1)
            if (waiting.length === 0) line.splice(at, 1)
          }
          expect(queue.length).toBe(size)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('holds 1,024 and lets the next one in when one leaves', () => {
    const queue = new ReadyQueue()
    for (const task of tasks.slice(0, 1_026)) queue.push(task)
    expect(READY_QUEUE_CAPACITY).toBe(1_024)
    const lengths = Array.from({ length: 4 }, () => {
      queue.shift()
      return queue.length
    })
    expect(lengths).toEqual([1_024, 1_024, 1_023, 1_022])
  })

  test('gives a withdrawn task once it is pushed again, behind the others', () => {
    const [a, b, c] = tasks as [Task, Task, Task]
    const pushed: Task[] = []
    const queue = new ReadyQueue((task) => pushed.push(task))
    for (const task of [a, b, c]) queue.push(task)
    queue.withdraw(a)
    queue.push(a)
    queue.withdraw(a)
    queue.withdraw(c)
    expect(queue.length).toBe(1)
    queue.push(a)
    expect(queue.length).toBe(2)
    expect([queue.shift(), queue.shift(), queue.shift()]).toEqual([b, a, undefined])
    queue.push(c)
    expect([queue.length, queue.shift(), queue.length]).toEqual([1, c, 0])
    expect(pushed).toEqual([a, b, c, a, a, c])
  })

  test('keeps nothing of a million places that were given up', () => {
    const queue = new ReadyQueue()
    const waiting = tasks.slice(0, 1_000)
    for (const task of waiting) queue.push(task)
    const begunAt = performance.now()
    for (let round = 0; round < 1_000; round++) {
      for (const task of waiting) {
        queue.withdraw(task)
        queue.push(task)
      }
    }
    const endedAt = performance.now()
    expect(queue.shift()).toBe(waiting[0])
    expect(performance.now() - endedAt).toBeLessThan((endedAt - begunAt) / 20)
    expect(queue.length).toBe(999)
  })
})

describe('a queue without a bound', () => {
  test('is a list that is pushed at one end and shifted at the other', () => {
    fc.assert(
      fc.property(bursts, (rounds) => {
        const queue = new Fifo<number>()
        let pushed = 0
        let shifted = 0
        for (const [pushes, shifts] of rounds) {
          for (let i = 0; i < pushes; i++) queue.push(pushed++)
          for (let i = 0; i < shifts; i++) {
            const expected = shifted < pushed ? shifted : undefined
            if (queue.peek() !== expected) throw new Error(`${queue.peek()} is first instead of ${expected}`)
            if (queue.shift() !== expected) throw new Error(`another one came than ${expected}`)
            if (expected !== undefined) shifted++
          }
          expect(queue.length).toBe(pushed - shifted)
        }
      }),
      { numRuns: 50 },
    )
  })
})

test('a queue that items leave wherever they stand gives the others in order, in any numbers', () => {
  const rounds = fc.array(fc.record({ adds: fc.nat(2_000), shifts: fc.nat(1_500), leaves: fc.nat(1_500) }), {
    maxLength: 12,
  })
  fc.assert(
    fc.property(rounds, fc.nat(), (given, seed) => {
      const queue = new Places<{ place: number }>()
      let waiting: { place: number }[] = []
      for (const { adds, shifts, leaves } of given) {
        for (let i = 0; i < adds; i++) {
          const item = { place: i }
          expect(queue.delete(item)).toBe(false)
          expect([queue.add(item), queue.add(item)]).toEqual([true, false])
          waiting.push(item)
        }
        const gone = new Set(waiting.slice(0, shifts))
        for (const item of gone) {
          if (queue.first !== item) throw new Error('another one is first')
          queue.delete(item)
        }
        const step = (seed % 7) + 1
        for (let i = 0; i < leaves; i++) {
          const item = waiting[shifts + i * step]
          if (item !== undefined && queue.delete(item)) gone.add(item)
        }
        waiting = waiting.filter((item) => !gone.has(item))
        expect([queue.size, queue.first]).toEqual([waiting.length, waiting[0]])
      }
    }),
    { numRuns: 30 },
  )
})

test('tenants of tokens take turns with tasks of any type, whatever tenant these name', () => {
  const tasksOf = (tenant: string | undefined, ...tasks: object[]) =>
    graphOf(
      tasks.map((task, i) => ({ id: `${tenant}-${i}`, type: 'test', ...task })),
      0,
      undefined,
      undefined,
      tenant,
    ).tasks
  const claim = { type: 'runtime', params: { control_context: { tenant: 'globex' } } }
  const queue = new ReadyQueue()
  for (const task of [...tasksOf('acme', {}, claim, {}), ...tasksOf('globex', {}), ...tasksOf(undefined, {})])
    queue.push(task)
  const order = Array.from({ length: 5 }, () => queue.shift()!.id)
  expect(order).toEqual(['acme-0', 'globex-0', 'undefined-0', 'acme-1', 'acme-2'])
})

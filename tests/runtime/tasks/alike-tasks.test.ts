/** Goal: the first of several tasks alike knows how often it was overtaken. Method: random operations beside a counter for each task. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { AlikeTasks } from '../../../runtime/tasks/alike-tasks.ts'

const newLine = () => new AlikeTasks<number>({ reservation: { task_slots: 1 } }, undefined)

const step = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }).map((gap) => ({ do: 'push' as const, gap })) },
  { weight: 4, arbitrary: fc.nat().map((pick) => ({ do: 'overtake' as const, pick })) },
  { weight: 1, arbitrary: fc.constant({ do: 'shift' as const }) },
  { weight: 2, arbitrary: fc.nat().map((pick) => ({ do: 'remove' as const, pick })) },
)

test('tasks alike are a list of tasks with a counter each', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const line = newLine()
      const places: { ticket: number; overtaken: number }[] = []
      let ticket = 0
      for (const step of steps) {
        if (step.do === 'push') {
          ticket += step.gap
          line.push(ticket, ticket)
          places.push({ ticket, overtaken: 0 })
        } else if (step.do === 'overtake') {
          const by = step.pick % (ticket + 2)
          line.overtake(by)
          for (const place of places) if (place.ticket < by) place.overtaken++
        } else if (places.length > 0) {
          const at = step.do === 'shift' ? 0 : step.pick % places.length
          const [gone] = places.splice(at, 1)
          expect(step.do === 'shift' ? line.shift() : line.remove(gone!.ticket)).toBe(gone!.ticket)
        }
        expect(line.length).toBe(places.length)
        if (places.length > 0) expect([line.firstTicket, line.overtaken]).toEqual(Object.values(places[0]!))
      }
    }),
    { numRuns: 500 },
  )
})

test('a long line keeps its order while it is taken from and added to', () => {
  const line = newLine()
  let taken = 0
  for (let ticket = 0; ticket < 20_000; ticket++) {
    line.push(ticket, ticket)
    line.overtake(ticket) // by the one that just came: all others
    if (ticket % 3 === 0) continue
    expect([line.firstTicket, line.overtaken]).toEqual([taken, ticket - taken])
    expect(line.shift()).toBe(taken++)
  }
  expect(line.length).toBe(20_000 - taken)
})

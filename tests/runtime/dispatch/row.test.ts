/** Goal: the first of a row knows how often it was overtaken. Method: random operations beside a counter for each task. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Row } from '../../../runtime/dispatch/row.ts'

const newRow = () => new Row<number>({ reservation: { task_slots: 1 } }, undefined)

const step = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 3 }).map((gap) => ({ do: 'push' as const, gap })) },
  { weight: 4, arbitrary: fc.nat().map((pick) => ({ do: 'overtake' as const, pick })) },
  { weight: 1, arbitrary: fc.constant({ do: 'shift' as const }) },
  { weight: 2, arbitrary: fc.nat().map((pick) => ({ do: 'remove' as const, pick })) },
)

test('a row is a list of tasks with a counter each', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const row = newRow()
      const places: { ticket: number; overtaken: number }[] = []
      let ticket = 0
      for (const step of steps) {
        if (step.do === 'push') {
          ticket += step.gap
          row.push(ticket, ticket)
          places.push({ ticket, overtaken: 0 })
        } else if (step.do === 'overtake') {
          const by = step.pick % (ticket + 2)
          row.overtake(by)
          for (const place of places) if (place.ticket < by) place.overtaken++
        } else if (places.length > 0) {
          const at = step.do === 'shift' ? 0 : step.pick % places.length
          const [gone] = places.splice(at, 1)
          expect(step.do === 'shift' ? row.shift() : row.remove(gone!.ticket)).toBe(gone!.ticket)
        }
        expect(row.length).toBe(places.length)
        if (places.length > 0) expect([row.firstTicket, row.overtaken]).toEqual(Object.values(places[0]!))
      }
    }),
    { numRuns: 500 },
  )
})

test('a long row keeps its order while it is taken from and added to', () => {
  const row = newRow()
  let taken = 0
  for (let ticket = 0; ticket < 20_000; ticket++) {
    row.push(ticket, ticket)
    row.overtake(ticket) // by the one that just came: all others
    if (ticket % 3 === 0) continue
    expect([row.firstTicket, row.overtaken]).toEqual([taken, ticket - taken])
    expect(row.shift()).toBe(taken++)
  }
  expect(row.length).toBe(20_000 - taken)
})

/** How the places for connections are divided among tasks. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { DIVIDED_PART, Places, placesPerTask } from '../../../runtime/egress/places.ts'

test('DIVIDED_PART of the places belongs to single tasks', () => {
  expect(DIVIDED_PART).toBe(1 / 2)
  expect([placesPerTask(4_096, 4), placesPerTask(100, 7), placesPerTask(3, 2), placesPerTask(0, 1)]).toEqual([
    512, 7, 0, 0,
  ])
})

test('whatever others take, a task gets its own places; all together never take more than there are', () => {
  const moves = fc.array(fc.tuple(fc.nat(3), fc.boolean()), { maxLength: 300 })
  fc.assert(
    fc.property(fc.nat(60), fc.integer({ min: 1, max: 4 }), moves, (count, tasks, steps) => {
      const places = new Places(count, tasks)
      const all = Array.from({ length: tasks }, () => ({ ...places.forTask(), held: 0 }))
      for (const [index, isEntering] of steps) {
        const task = all[index % tasks]!
        if (isEntering) {
          const entered = task.enter()
          if (task.held < placesPerTask(count, tasks)) expect(entered).toBe(true)
          if (entered) task.held++
        } else if (task.held > 0) {
          task.held--
          task.leave()
        }
        expect(places.taken).toBe(all.reduce((sum, { held }) => sum + held, 0))
        expect(places.taken).toBeLessThanOrEqual(count)
      }
    }),
  )
})

test('one task alone has its own places and the common ones', () => {
  const one = new Places(100, 4).forTask()
  let held = 0
  while (one.enter()) held++
  expect(held).toBe(placesPerTask(100, 4) + 100 - 4 * placesPerTask(100, 4))
})

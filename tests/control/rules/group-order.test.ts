/** Goal: a graph that is checked counts the tasks of its groups, not the groups. */
import { expect, test } from 'bun:test'
import { groupOrder, MAX_NAMED_CHILDREN } from '../../../control/rules/group-order.ts'
import type { ValidTask } from '../../../control/rules/validate.ts'

const member = (id: string, ...depends_on: string[]) => ({ id, type: 'noop', depends_on })
const group = (more: object, ...tasks: object[]) =>
  ({ id: 'each', type: 'group', tasks, ...more }) as unknown as ValidTask
const steps = [member('lint'), member('test', 'build'), member('build'), member('push', 'test', 'lint')]

test('without for_each, its tasks are in its place', () => {
  expect(groupOrder(group({}, ...steps), undefined)).toEqual({
    waves: [['each/lint', 'each/build'], ['each/test'], ['each/push']],
    path: ['each/build', 'each/test', 'each/push'],
  })
})

test('the elements of a known list run beside each other; those of any other list have one name', () => {
  const list = ['x', 'y']
  const known = {
    waves: [
      ['each[0]/a', 'each[1]/a'],
      ['each[0]/b', 'each[1]/b'],
    ],
    path: ['each[0]/a', 'each[0]/b'],
  }
  const any = { waves: [['each[*]/a'], ['each[*]/b']], path: ['each[*]/a', 'each[*]/b'] }
  const both = [member('a'), member('b', 'a')]
  expect(groupOrder(group({ for_each: list }, ...both), undefined)).toEqual(known)
  expect(groupOrder(group({ for_each: { $param: 'list' } }, ...both), { list })).toEqual(known)
  expect(groupOrder(group({ for_each: { $from: 'before' } }, ...both), undefined)).toEqual(any)
  const long = Array.from({ length: MAX_NAMED_CHILDREN / 2 }, () => 1)
  expect(groupOrder(group({ for_each: long }, ...both), undefined)!.waves.flat()).toHaveLength(MAX_NAMED_CHILDREN)
  expect(groupOrder(group({ for_each: [...long, 1] }, ...both), undefined)).toEqual(any)
})

test('of an empty list, nothing is in its place', () => {
  expect(groupOrder(group({ for_each: [] }, member('a')), undefined)).toBeUndefined()
})

/** What patches make of the tasks of a graph: as a list that is edited step by step says, and nothing for a fault. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { patched, reachedFrom } from '../../../control/rules/patch.ts'
import { runSync } from '../../../shared/process/steps.ts'

interface Plan {
  readonly id: string
  readonly params?: number
  readonly depends_on?: readonly string[]
}

const free = () => undefined

test('a patch takes away, replaces, changes and adds as an editor of the list does', () => {
  const acts = fc.array(fc.constantFrom('keep', 'remove', 'replace', 'change'), { maxLength: 12 })
  fc.assert(
    fc.property(acts, fc.nat(4), (what, more) => {
      const tasks: Plan[] = what.map((_, i) => ({ id: `t${i}`, params: i }))
      const idsOf = (act: string) => tasks.filter((_, i) => what[i] === act).map(({ id }) => id)
      const add: Plan[] = Array.from({ length: more }, (_, i) => ({ id: `n${i}` }))
      const found = patched<Plan>(
        tasks,
        {
          add,
          remove: idsOf('remove'),
          replace: idsOf('replace').map((id) => ({ id })),
          change: Object.fromEntries(idsOf('change').map((id) => [id, { params: -1 }])),
        },
        free,
      )
      const expected = tasks.flatMap((task, i): Plan[] => {
        if (what[i] === 'remove') return []
        if (what[i] === 'replace') return [{ id: task.id }]
        return [what[i] === 'change' ? { ...task, params: -1 } : task]
      })
      expect(found).toMatchObject({ tasks: [...expected, ...add] })
    }),
  )
})

test.each([
  [{ remove: ['x'] }, 'remove: the graph has no task "x"'],
  [{ replace: [{ id: 'x' }] }, 'replace: the graph has no task "x"'],
  [{ remove: ['a', 'a'] }, 'remove: task a is in remove, too: name it once'],
  [{ remove: ['a'], change: { a: { params: 1 } } }, 'change: task a is in remove, too: name it once'],
  [
    { change: { a: { depends_on: [] } } },
    'change: "depends_on" of task a is none of params, timeout, retry, priority: replace the task',
  ],
  [{ remove: ['b'] }, 'task b has started'],
] as const)('the fault of %j is told', (patch, fault) => {
  const whyFixed = (id: string) => (id === 'b' ? 'task b has started' : undefined)
  expect(patched<Plan>([{ id: 'a' }, { id: 'b' }], patch, whyFixed)).toEqual({ fault })
})

test('an approval guards itself and exactly what can be reached from it, and each task is looked at once', () => {
  const graph = fc.array(fc.uniqueArray(fc.nat(9), { maxLength: 3 }), { minLength: 1, maxLength: 10 })
  fc.assert(
    fc.property(graph, fc.uniqueArray(fc.nat(9)), (lists, picks) => {
      const dependents = lists.map((list, i) => list.filter((to) => to > i && to < lists.length))
      const approvals = picks.filter((at) => at < lists.length)
      const asked: number[] = []
      const dependentsOf = (at: number) => {
        asked.push(at)
        return dependents[at]!
      }
      const reached = runSync(reachedFrom(dependentsOf, approvals))
      expect(asked).toEqual([...new Set(asked)])
      for (let to = 0; to < lists.length; to++) {
        const reaches = (from: number): boolean => from === to || dependents[from]!.some(reaches)
        const guards = approvals.filter(reaches)
        const found = reached.get(to)
        expect(found === undefined ? guards.length === 0 : guards.includes(found)).toBe(true)
      }
    }),
  )
})

/** Goal: the numbers of a tenant hold nobody up, however many graphs there are, and come to an end. */
import { expect, test } from 'bun:test'
import { tenantNumbers } from '../../../control/operations/tenant-numbers.ts'
import { TaskStore } from '../../../control/task/task-store.ts'
import { STEPS_PER_YIELD } from '../../../shared/process/steps.ts'
import { graphOf } from '../../support/graph.ts'

const accept = (store: TaskStore, tenant: string, size = 1) => {
  const tasks = Array.from({ length: size }, (_, i) => ({ id: `t${i}`, type: 'test' }))
  store.apply({ kind: 'graph-accepted', graph: graphOf(tasks, 1, undefined, undefined, tenant) })
}

test('are counted with pauses, over graphs of others and over a large one, without what comes meanwhile', () => {
  const store = new TaskStore()
  for (let i = 0; i < 5 * STEPS_PER_YIELD; i++) accept(store, 'globex')
  accept(store, 'acme', 5 * STEPS_PER_YIELD)
  accept(store, 'acme')
  const steps = tenantNumbers(store, 'acme')
  let pauses = 0
  for (;;) {
    const { done, value } = steps.next()
    if (done) {
      expect(pauses).toBeGreaterThanOrEqual(15) // the graphs once, the tasks of the large one twice
      expect(value.graphs).toEqual({ running: 2, success: 0, failed: 0, cancelled: 0 })
      expect(value.byType.get('test')).toMatchObject({ pending: 5 * STEPS_PER_YIELD + 1 })
      return
    }
    pauses++
    accept(store, 'acme')
    if (pauses > 1_000) throw new Error('there is no end')
  }
})

/** Why no graph would be taken in, in the order in which a POST meets the reasons. */
import { expect, test } from 'bun:test'
import { storageUnavailable } from '../../../control/log/storage-errors.ts'
import { Readiness } from '../../../control/operations/readiness.ts'
import { operationParts } from '../../support/operation-parts.ts'

function world() {
  const state = { isDraining: false, schedulerFault: undefined as string | undefined, disk: undefined as unknown }
  const assertAccepting = () => {
    if (state.disk !== undefined) throw storageUnavailable(state.disk)
  }
  const ground = operationParts({
    scheduler: {
      get fault() {
        return state.schedulerFault
      },
    },
    keeper: { assertAccepting, probe: assertAccepting },
    retention: { ensureRoom: () => {} },
  })
  const readiness = new Readiness(ground, () => state.isDraining)
  return { state, readiness }
}

test('nothing: it is ready', () => {
  const { readiness } = world()
  expect(readiness.fault()).toBeUndefined()
  expect(() => readiness.ensure()).not.toThrow()
})

test.each([
  [{ isDraining: true }, 'the service is stopping and accepts no new graphs'],
  [{ schedulerFault: 'the scheduler broke' }, 'the scheduler broke'],
  [{ disk: new Error('the disk failed to sync') }, 'the disk failed to sync'],
])('%j', (fault, reason) => {
  const { state, readiness } = world()
  Object.assign(state, fault)
  expect(readiness.fault()).toBe(reason)
  expect(() => readiness.ensure()).toThrow(reason)
})

import { expect, test } from 'bun:test'
import { isFenced, lackOf, seesService, signInCode } from '../../../control/dashboard/model/session.ts'
import { RIGHTS, type Right } from '../../../shared/contract/rights.ts'

const session = { name: 'agent', rights: [...(['read', 'submit', 'cancel_own'] as const)] }

test('what a token may not has a reason, and until it is known everything is offered', () => {
  expect(RIGHTS.filter((right) => lackOf(session, right) === undefined)).toEqual(['read', 'submit', 'cancel_own'])
  expect(lackOf(session, 'operate')).toBe('The token agent lacks the right operate.')
  expect(lackOf(undefined, 'operate')).toBeUndefined()
})

test('who may cancel its own may cancel what it submitted', () => {
  expect(lackOf(session, 'cancel', 'agent')).toBeUndefined()
  for (const other of ['ada', undefined]) expect(lackOf(session, 'cancel', other)).toContain('right cancel.')
  expect(lackOf({ name: 'ops', rights: ['cancel'] }, 'cancel', 'ada')).toBeUndefined()
  expect(lackOf({ rights: ['read'] }, 'cancel')).toBeDefined()
})

test('a tenant sees nothing of the service, and without the right host its tasks stay in a sandbox', () => {
  expect([seesService({}), seesService({ tenant: 'acme' })]).toEqual([true, false])
  const of = (tenant?: string, ...rights: Right[]) => ({ rights, ...(tenant !== undefined && { tenant }) })
  expect([of(), of('acme', 'submit'), of('acme', 'host'), undefined].map(isFenced)).toEqual([false, true, false, false])
})

test.each([
  ['#/sign-in/a-B_9', 'a-B_9'],
  ['#/sign-in/', undefined],
  ['#/graphs/sign-in/x', undefined],
  ['#/sign-in/a?b', undefined],
  ['', undefined],
])('the code in %j is %p', (hash, code) => {
  expect(signInCode(hash)).toBe(code)
})

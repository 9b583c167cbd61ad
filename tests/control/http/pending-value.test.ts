/** Goal: a value that is waited for in turns is neither lost nor piled up on. */
import { expect, spyOn, test } from 'bun:test'
import { PendingValue } from '../../../control/http/pending-value.ts'

test('each wait ends in time, and the value comes with the first one after it is there', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const pending = new PendingValue(promise)
  expect(await pending.within(1)).toBeUndefined()
  expect(await pending.within(1)).toBeUndefined()
  const waiting = pending.within(60_000)
  resolve('here')
  expect(await waiting).toEqual({ value: 'here' })
  expect(await pending.within(0)).toEqual({ value: 'here' })
})

test('an undefined value is a value', async () => {
  expect(await new PendingValue(Promise.resolve(undefined)).within(60_000)).toEqual({ value: undefined })
})

test('a rejection is thrown by a wait, also by one that begins later', async () => {
  const { promise, reject } = Promise.withResolvers<string>()
  const pending = new PendingValue(promise)
  const waiting = pending.within(60_000)
  reject(new Error('no'))
  await expect(waiting).rejects.toThrow('no')
  await expect(pending.within(0)).rejects.toThrow('no')
})

test('waiting a hundred times leaves nothing at the promise', async () => {
  const { promise } = Promise.withResolvers<string>()
  const listens = spyOn(promise, 'then')
  const pending = new PendingValue(promise)
  for (let turn = 0; turn < 100; turn++) await pending.within(0)
  expect(listens).toHaveBeenCalledTimes(1)
})

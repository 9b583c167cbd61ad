/** Goal: a wait ends with the work or the signal, whichever comes first. Method: promises that the test settles. */
import { expect, test } from 'bun:test'
import { getEventListeners } from 'node:events'
import { unlessAborted } from '../../../shared/process/unless-aborted.ts'

const left = () => new Error('left')

function waiting() {
  const controller = new AbortController()
  const { promise: work, resolve, reject } = Promise.withResolvers<string>()
  return { controller, work, resolve, reject, result: unlessAborted(work, controller.signal, left) }
}

test('gives what the work gives', async () => {
  const { resolve, result } = waiting()
  resolve('done')
  expect(await result).toBe('done')
})

test('fails as the work does', async () => {
  const { reject, result } = waiting()
  reject(new Error('EIO'))
  await expect(result).rejects.toThrow('EIO')
})

test('fails once the signal fires, and the work goes on', async () => {
  const { controller, work, resolve, result } = waiting()
  controller.abort()
  await expect(result).rejects.toThrow('left')
  resolve('done')
  expect(await work).toBe('done')
})

test('fails at once where the signal has fired', async () => {
  const { promise: never } = Promise.withResolvers<void>()
  await expect(unlessAborted(never, AbortSignal.abort(), left)).rejects.toThrow('left')
})

test('a failure that comes after the signal is nobody’s', async () => {
  const { controller, reject, result } = waiting()
  controller.abort()
  await expect(result).rejects.toThrow('left')
  reject(new Error('too late')) // were it unhandled, the run would fail
  await Bun.sleep(0)
})

test.each(['resolve', 'reject', 'abort'] as const)('nothing stays at the signal: %s', async (how) => {
  const controller = new AbortController()
  const { promise: work, resolve, reject } = Promise.withResolvers<void>()
  const listeners = () => getEventListeners(controller.signal, 'abort')
  const result = unlessAborted(work, controller.signal, left)
  expect(listeners()).toHaveLength(1)
  if (how === 'resolve') resolve()
  else if (how === 'reject') reject(new Error('EIO'))
  else controller.abort()
  await result.catch(() => {})
  expect(listeners()).toHaveLength(0)
})

/** Goal: a reader that does not read holds nobody up for long, and hears what it missed. Method: a pipe of the test. */
import { afterEach, beforeEach, expect, jest, test } from 'bun:test'
import { PatientTexts } from '../../../adapter/follow/patient-texts.ts'
import { STALL_MS } from '../../../adapter/follow/standard-error.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** A pipe that takes a text when it is told to. */
function pipe({ isTerminal = false } = {}) {
  const taken: string[] = []
  let take: (() => void) | undefined
  const texts = new PatientTexts(
    (text) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      take = () => {
        taken.push(String(text))
        resolve()
      }
      return promise
    },
    isTerminal ? undefined : STALL_MS,
  )
  const settled = async () => {
    for (let i = 0; i < 10; i++) await Promise.resolve()
  }
  const read = async () => {
    take?.()
    take = undefined
    await settled()
  }
  const isDrained = async () => {
    let is = false
    void texts.drained().then(() => {
      is = true
    })
    await settled()
    return is
  }
  return { texts, taken, read, isDrained }
}

test('texts leave in order, and drained waits for them', async () => {
  const { texts, taken, read, isDrained } = pipe()
  expect(await isDrained()).toBe(true)
  texts.write('a')
  texts.write('b')
  expect(await isDrained()).toBe(false)
  await read()
  expect([taken, await isDrained()]).toEqual([['a'], false])
  await read()
  expect([taken, texts.isBusy, await isDrained()]).toEqual([['a', 'b'], false, true])
})

test('a pipe that takes nothing loses texts after STALL_MS, and is told how many lines once it takes some', async () => {
  const { texts, taken, read, isDrained } = pipe()
  texts.write('a\n')
  texts.write('b\nc\n')
  jest.advanceTimersByTime(STALL_MS - 1)
  expect(await isDrained()).toBe(false)
  jest.advanceTimersByTime(1)
  expect(await isDrained()).toBe(true)
  texts.write('d\n')
  texts.write(new TextEncoder().encode('e'))
  expect(texts.isBusy).toBe(false)
  await read()
  await read()
  const notice = 'taskmill: 4 lines are not shown: nobody read standard error\n'
  expect([taken, await isDrained()]).toEqual([['a\n', notice], true])
  texts.write('f\n')
  await read()
  expect(taken).toEqual(['a\n', notice, 'f\n'])
})

test('a slow pipe loses nothing: each text has the whole time', async () => {
  const { texts, taken, read } = pipe()
  const lines = ['a', 'b', 'c', 'd']
  for (const line of lines) texts.write(line)
  for (const _ of lines) {
    jest.advanceTimersByTime(STALL_MS - 1)
    await read()
  }
  expect(taken).toEqual(lines)
})

test('a terminal is waited for', async () => {
  const { texts, isDrained } = pipe({ isTerminal: true })
  texts.write('a')
  jest.advanceTimersByTime(100 * STALL_MS)
  expect(await isDrained()).toBe(false)
})

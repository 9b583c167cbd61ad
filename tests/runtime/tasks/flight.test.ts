/** Goal: a flight and its launch say what is true of the task. Method: an adopted launch, whose launcher the test is. */
import { expect, test } from 'bun:test'
import { LiveTask } from '../../../runtime/store/live-task.ts'
import { Flight, type FlightContext, InFlight } from '../../../runtime/tasks/flight.ts'
import { Launch } from '../../../runtime/tasks/launch.ts'
import { memoryLog } from '../../support/memory-log.ts'
import { acceptedRow } from '../../support/stored-tasks.ts'

const STARTED = {
  event: 'started',
  task_id: 'a',
  launcher_pid: 1,
  pid: 2,
  pgid: 2,
  start_time: 3,
  started_ms: 4,
} as const

/** A flight whose launcher lives, with those parts that it meets here. `hasBegun` is asked when the task is ended by force. */
function flightOf(started_at: number | null, hasBegun: () => boolean = () => true) {
  const context = {
    store: { note: () => {} },
    totals: { started: () => {} },
    records: { hasBegun, isLauncherAlive: () => true },
    force: { endWhatIsLeft: async () => {} },
    log: memoryLog().log,
  }
  const task = new LiveTask({ ...acceptedRow('a', { started_at }), ordinal: 1 }, '')
  const flight = new Flight(context as unknown as FlightContext, task)
  void flight.adopt(true, () => {})
  return flight
}
const isSettled = (flight: Flight) => Promise.race([flight.settled.then(() => true), Bun.sleep(0).then(() => false)])

test('a launch is settled once its task has started', async () => {
  const flight = flightOf(null)
  expect([flight.phase.name, await isSettled(flight)]).toEqual(['launched', false])
  flight.heard(STARTED)
  expect([flight.launch!.startedMs, await isSettled(flight)]).toEqual([expect.any(Number), true])
})

test('an adopted launch has started if an earlier service saw that, at a time that we do not know', async () => {
  const flight = flightOf(5)
  expect([flight.launch!.startedMs, await isSettled(flight)]).toEqual([undefined, true])
})

test('force that does not work leaves the launch that was', async () => {
  const flight = flightOf(null, () => {
    throw new Error('no disk')
  })
  await flight.force()
  expect([flight.launch!.isForced, flight.launch!.startedMs]).toEqual([false, undefined])
})

test('force that does not work leaves a start that was heard meanwhile', async () => {
  const flight: Flight = flightOf(null, () => {
    flight.heard(STARTED)
    expect(flight.launch!.isForced).toBe(true)
    throw new Error('no disk')
  })
  await flight.force()
  expect([flight.launch!.isForced, flight.launch!.startedMs]).toEqual([false, expect.any(Number)])
})

test('an outcome that was heard ends a launch before its launcher is gone', async () => {
  const heard = new Launch({ gone: new Promise(() => {}) }, undefined)
  heard.heard({ event: 'ended', task_id: 'a' })
  expect(await heard.over).toEqual({})
})

test('a word about a task that is not in flight is not heard', () => {
  const inFlight = new InFlight()
  const flight = flightOf(null)
  inFlight.set('b', flight)
  inFlight.heard(STARTED)
  expect(flight.launch!.startedMs).toBeUndefined()
})

/** Goal: the phase of a flight says what is true of its launch. Method: the ways from phase to phase, step by step. */
import { expect, test } from 'bun:test'
import type { Launcher } from '../../../runtime/launch/launcher-host.ts'
import { LiveTask } from '../../../runtime/store/live-task.ts'
import { Flight, InFlight, Launch } from '../../../runtime/tasks/flight.ts'
import { acceptedRow } from '../../support/stored-tasks.ts'

const ASKED = { program: 'a', workdir: '/', wall_time_ms: 1_000, max_output_bytes: 1 }

const SILENT: Launcher = {
  gone: new Promise(() => {}),
  heard: () => {},
  lookAround: () => true,
  serverEnded: () => {},
}

const flightOf = (started_at: number | null = null) =>
  new Flight(new LiveTask({ ...acceptedRow('a', { started_at }), ordinal: 1 }, ''))
const launch = (asked?: typeof ASKED) => new Launch(SILENT, asked)
const isSettled = (flight: Flight) => Promise.race([flight.settled.then(() => true), Bun.sleep(0).then(() => false)])

test('a launch is settled once its task has started, or ends', async () => {
  const flight = flightOf()
  expect([flight.phase.name, flight.launch]).toEqual(['reserved', undefined])
  flight.launched(launch(ASKED))
  expect([flight.phase.name, await isSettled(flight)]).toEqual(['launched', false])
  flight.startHeard()
  expect([flight.phase.name, await isSettled(flight)]).toEqual(['started', true])
  flight.ending()
  expect([flight.phase.name, flight.launch]).toEqual(['ending', undefined])
})

test('an adopted launch has started if an earlier service saw that, at a time that we do not know', async () => {
  const [waiting, running] = [flightOf(), flightOf(5)]
  for (const flight of [waiting, running]) flight.adopted(launch())
  expect([waiting.phase.name, running.phase]).toMatchObject(['launched', { name: 'started', startedMs: undefined }])
  expect([await isSettled(waiting), await isSettled(running)]).toEqual([false, true])
})

test('a delayed launch has no launcher, and the next one is settled by itself', async () => {
  const flight = flightOf()
  flight.launched(launch(ASKED))
  const isOver = flight.delayed()
  expect([flight.phase.name, flight.launch, await isSettled(flight)]).toEqual(['delayed', undefined, true])
  if (flight.phase.name === 'delayed') flight.phase.wake()
  await isOver
  expect([flight.phase.name, await isSettled(flight)]).toEqual(['reserved', false])
})

test('force that did not work leaves the phase that was, with a start that was heard meanwhile', () => {
  const flight = flightOf()
  flight.launched(launch(ASKED))
  flight.forced(flight.launchedPhase!)()
  expect(flight.phase.name).toBe('launched')
  const undo = flight.forced(flight.launchedPhase!)
  expect(flight.phase.name).toBe('forced')
  flight.startHeard()
  expect(flight.phase.name).toBe('forced')
  undo()
  expect(flight.phase.name).toBe('started')
})

test('an outcome that was heard ends a launch before its launcher is gone', async () => {
  const heard = launch(ASKED)
  heard.endHeard()
  expect(await heard.over).toEqual({})
})

test('the table has a flight for each task, until it is removed', () => {
  const inFlight = new InFlight({ note: () => {} }, { started: () => {} })
  const { task } = flightOf()
  const flight = inFlight.add(task)
  expect([inFlight.count, inFlight.get('a'), [...inFlight]]).toEqual([1, flight, [flight]])
  inFlight.remove(flight)
  expect([inFlight.has('a'), inFlight.count]).toEqual([false, 0])
})

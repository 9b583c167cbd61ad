/** Goal: the phase of a record says what is true of its launch. Method: the ways from phase to phase, step by step. */
import { expect, test } from 'bun:test'
import type { Launcher } from '../../../runtime/launch/launcher-host.ts'
import { LiveTask } from '../../../runtime/store/live-task.ts'
import { FlightRecord, InFlight, Launch } from '../../../runtime/tasks/in-flight.ts'
import { acceptedRow } from '../../support/stored-tasks.ts'

const ASKED = { program: 'a', workdir: '/', wall_time_ms: 1_000, max_output_bytes: 1 }

const SILENT: Launcher = {
  gone: new Promise(() => {}),
  heard: () => {},
  lookAround: () => true,
  serverEnded: () => {},
}

const recordOf = (started_at: number | null = null) =>
  new FlightRecord(new LiveTask({ ...acceptedRow('a', { started_at }), ordinal: 1 }, ''))
const launch = (asked?: typeof ASKED) => new Launch(SILENT, asked)
const isSettled = (record: FlightRecord) =>
  Promise.race([record.settled.then(() => true), Bun.sleep(0).then(() => false)])

test('a launch is settled once its task has started, or ends', async () => {
  const record = recordOf()
  expect([record.phase.name, record.launch]).toEqual(['reserved', undefined])
  record.launched(launch(ASKED))
  expect([record.phase.name, await isSettled(record)]).toEqual(['launched', false])
  record.startHeard()
  expect([record.phase.name, await isSettled(record)]).toEqual(['started', true])
  record.ending()
  expect([record.phase.name, record.launch]).toEqual(['ending', undefined])
})

test('an adopted launch has started if an earlier service saw that, at a time that we do not know', async () => {
  const [waiting, running] = [recordOf(), recordOf(5)]
  for (const record of [waiting, running]) record.adopted(launch())
  expect([waiting.phase.name, running.phase]).toMatchObject(['launched', { name: 'started', startedMs: undefined }])
  expect([await isSettled(waiting), await isSettled(running)]).toEqual([false, true])
})

test('a delayed launch has no launcher, and the next one is settled by itself', async () => {
  const record = recordOf()
  record.launched(launch(ASKED))
  const isOver = record.delayed()
  expect([record.phase.name, record.launch, await isSettled(record)]).toEqual(['delayed', undefined, true])
  if (record.phase.name === 'delayed') record.phase.wake()
  await isOver
  expect([record.phase.name, await isSettled(record)]).toEqual(['reserved', false])
})

test('force that did not work leaves the phase that was, with a start that was heard meanwhile', () => {
  const record = recordOf()
  record.launched(launch(ASKED))
  record.forced(record.launchedPhase!)()
  expect(record.phase.name).toBe('launched')
  const undo = record.forced(record.launchedPhase!)
  expect(record.phase.name).toBe('forced')
  record.startHeard()
  expect(record.phase.name).toBe('forced')
  undo()
  expect(record.phase.name).toBe('started')
})

test('an outcome that was heard ends a launch before its launcher is gone', async () => {
  const heard = launch(ASKED)
  heard.endHeard()
  expect(await heard.over).toEqual({})
})

test('the table has a record for each task, until it is removed', () => {
  const inFlight = new InFlight()
  const { task } = recordOf()
  const record = inFlight.add(task)
  expect([inFlight.count, inFlight.get('a'), [...inFlight]]).toEqual([1, record, [record]])
  inFlight.remove(record)
  expect([inFlight.has('a'), inFlight.count]).toEqual([false, 0])
})

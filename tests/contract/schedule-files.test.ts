/** Schedules in files: what a service makes of a directory of graph files, and what the client does with such a file. */
import { describe, expect, test } from 'bun:test'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { MAX_SCHEDULE_FILE_BYTES } from '../../control/schedules/schedule-file.ts'
import { SETTLE_MS } from '../../control/schedules/schedule-files.ts'
import { errorOf } from '../support/answers.ts'
import { runClient } from '../support/client.ts'
import { type Control, startControl } from '../support/control.ts'
import { asFiles, listed, place, schedule, TASKS, YEARLY, yaml } from '../support/schedule-files.ts'
import { until } from '../support/until.ts'

const gone = (control: Control, name: string) =>
  until(
    () => control.fetch(`/schedules/${name}`),
    ({ status }) => status === 404,
  )

const call = (control: Control, name: string, verb: string) =>
  control.fetch(`/schedules/${name}/${verb}`, { method: 'POST' })

describe('a file', () => {
  test('is a schedule as long as it is there, over restarts, and callers do not change it', async () => {
    using here = place()
    here.write('nightly.yaml', yaml(`{${YEARLY}, timezone: Europe/Berlin}`))
    here.write(
      'hourly.json',
      JSON.stringify({ schedule: { name: 'each-hour', every: 3_600_000 }, tasks: [{ id: 'a', type: 'noop' }] }),
    )
    here.write('.hidden.yaml', 'x')
    here.write('notes.txt', 'x')
    let created: string
    {
      await using control = await here.start()
      await asFiles(control, [
        { file: 'hourly.json', schedule: 'each-hour' },
        { file: 'nightly.yaml', schedule: 'nightly' },
      ])
      const nightly = await schedule(control, 'nightly')
      expect(nightly).toMatchObject({
        file: 'nightly.yaml',
        timezone: 'Europe/Berlin',
        graph: { tasks: [{ id: 'a' }] },
      })
      created = nightly.created_at
      const refusal = '409 schedule nightly is that of the file nightly.yaml: change the file, or remove it'
      const body = JSON.stringify({ every: 60_000, graph: { tasks: [{ id: 'a', type: 'noop' }] } })
      expect(await errorOf(await control.fetch('/schedules/nightly', { method: 'PUT', body }))).toBe(refusal)
      expect(await errorOf(await control.fetch('/schedules/nightly', { method: 'DELETE' }))).toBe(refusal)
      expect((await control.fetch('/schedules/nightly?dry_run=true', { method: 'PUT', body })).status).toBe(200)
      expect((await call(control, 'nightly', 'trigger')).status).toBe(202)
      expect((await schedule(control, 'nightly')).runs).toHaveLength(1)
      expect(await control.stop('SIGTERM')).toBe(0)
    }
    rmSync(here.at('hourly.json'))
    await using again = await here.start()
    await gone(again, 'each-hour')
    await asFiles(again, [{ file: 'nightly.yaml', schedule: 'nightly' }])
    const same = await schedule(again, 'nightly')
    expect([same.created_at, same.updated_at, same.runs.length]).toEqual([created, created, 1])
    rmSync(here.at('nightly.yaml'))
    await gone(again, 'nightly')
    expect((await (await again.fetch('/graphs?label=schedule=nightly')).json()) as object[]).toHaveLength(1)
  })

  test('that changes is read again, and goes on where it was; a renamed one keeps what it names', async () => {
    using here = place()
    here.write('a.yaml', yaml(`{name: kept, ${YEARLY}}`))
    await using control = await here.start()
    expect((await call(control, (await schedule(control, 'kept')).name, 'trigger')).status).toBe(202)
    here.write('a.yaml', yaml(`{name: kept, ${YEARLY}, keep: 3}`))
    await until(
      () => schedule(control, 'kept'),
      ({ keep }) => keep === 3,
    )
    renameSync(here.at('a.yaml'), here.at('b.yaml'))
    await until(
      () => schedule(control, 'kept'),
      ({ file }) => file === 'b.yaml',
    )
    expect((await schedule(control, 'kept')).runs).toHaveLength(1)
    here.write('b.yaml', yaml(`{name: other, ${YEARLY}}`))
    await gone(control, 'kept')
    expect((await schedule(control, 'other')).file).toBe('b.yaml')
  })

  test('with a fault leaves its schedule as it is, and the fault is listed with its line and logged once', async () => {
    using here = place()
    here.write('a.yaml', yaml(`{${YEARLY}, keep: 3}`))
    await using control = await here.start()
    await schedule(control, 'a')
    const faults = async (text: string) => {
      here.write('a.yaml', text)
      const before = (await listed(control))[0]?.error
      const found = await until(
        () => listed(control),
        ([file]) => file?.error !== undefined && file.error !== before,
      )
      return found[0]?.error
    }
    expect(await faults(yaml('{cron: "99 0 1 1 *"}'))).toContain('cron: ')
    expect(await faults(yaml('{every: 1}'))).toMatch(
      /^a\.yaml: line 1, column \d+: schedule\.every: expected integer of milliseconds.*, got 1$/,
    )
    expect(await faults(yaml(`{${YEARLY}}`, 'tasks: [{id: a, type: noop, retry: x}]'))).toMatch(
      /^a\.yaml: line 2, column \d+: tasks\[0\]\.retry: expected/,
    )
    expect(await faults(TASKS)).toBe('it has no field schedule: add one, or move the file elsewhere')
    expect(await faults('schedule: 5')).toContain('schedule: expected object such as')
    expect(await faults(yaml('{graph: {}}'))).toContain('schedule.graph: the graph is the file itself')
    expect(await faults('a: [')).toContain('a.yaml: line')
    expect(await faults('x'.repeat(MAX_SCHEDULE_FILE_BYTES + 1))).toBe(
      `it has more than ${MAX_SCHEDULE_FILE_BYTES} bytes`,
    )
    expect((await schedule(control, 'a')).keep).toBe(3)
    expect(control.log.filter(({ msg }) => msg === 'a file of a schedule cannot be used')).toHaveLength(8)
    here.write('a.yaml', yaml(`{${YEARLY}, keep: 4}`))
    await asFiles(control, [{ file: 'a.yaml', schedule: 'a' }])
    expect((await schedule(control, 'a')).keep).toBe(4)
    expect((await listed(control))[0]).not.toHaveProperty('error')
  })

  test('is paused by callers, over changes and restarts, unless it says paused itself', async () => {
    using here = place()
    here.write('a.yaml', yaml(`{${YEARLY}}`))
    here.write('b.yaml', yaml(`{${YEARLY}, paused: true}`))
    {
      await using control = await here.start()
      await schedule(control, 'b')
      expect((await call(control, (await schedule(control, 'a')).name, 'pause')).status).toBe(200)
      expect(await errorOf(await call(control, 'b', 'resume'))).toBe(
        '409 the file b.yaml of schedule b says paused: change it there, or leave it out of the file',
      )
      here.write('a.yaml', yaml(`{${YEARLY}, keep: 3}`))
      here.write('b.yaml', yaml(`{${YEARLY}}`))
      await until(
        async () => [await schedule(control, 'a'), await schedule(control, 'b')],
        ([a, b]) => a?.keep === 3 && b?.paused === false,
      )
      expect((await schedule(control, 'a')).paused).toBe(true)
      expect(await control.stop('SIGTERM')).toBe(0)
    }
    await using again = await here.start()
    await asFiles(again, [
      { file: 'a.yaml', schedule: 'a' },
      { file: 'b.yaml', schedule: 'b' },
    ])
    expect((await schedule(again, 'a')).paused).toBe(true)
    expect((await call(again, 'a', 'resume')).status).toBe(200)
  })

  test('does not take the schedule of a caller or of another file, until that is gone', async () => {
    using here = place()
    await using control = await here.start()
    const body = JSON.stringify({ every: 60_000, graph: { tasks: [{ id: 'a', type: 'noop' }] } })
    expect((await control.fetch('/schedules/mine', { method: 'PUT', body })).status).toBe(201)
    here.write('a.yaml', yaml(`{name: one, ${YEARLY}}`))
    here.write('b.yaml', yaml(`{name: one, ${YEARLY}, keep: 7}`))
    here.write('mine.yaml', yaml(`{${YEARLY}}`))
    await asFiles(control, [
      { file: 'a.yaml', schedule: 'one' },
      { file: 'b.yaml', error: 'the schedule one is that of the file a.yaml: give this file another schedule.name' },
      {
        file: 'mine.yaml',
        error: 'a caller has put the schedule mine: delete it first, or give this file another schedule.name',
      },
    ])
    rmSync(here.at('a.yaml'))
    await until(
      () => schedule(control, 'one'),
      ({ file, keep }) => file === 'b.yaml' && keep === 7,
    )
    expect(await schedule(control, 'mine')).toMatchObject({ every: 60_000 })
  })
})

test('a file that grows is read once it is whole', async () => {
  using here = place()
  await using control = await here.start()
  here.write('a.yaml', yaml(`{${YEARLY}}`))
  const began = performance.now()
  here.write('a.yaml', 'half: [')
  await until(
    () => performance.now() - began,
    (ms) => ms > SETTLE_MS / 2,
  )
  here.write('a.yaml', yaml(`{${YEARLY}, keep: 9}`))
  expect((await schedule(control, 'a')).keep).toBe(9)
  expect(control.log.filter(({ msg }) => msg === 'a file of a schedule cannot be used')).toEqual([])
})

test('a directory that is none is refused', async () => {
  const flags = ['--schedules-dir', '/nowhere/at-all']
  expect(String(await startControl({ flags }).catch((error: Error) => error))).toContain(
    '--schedules-dir /nowhere/at-all is no directory (create it)',
  )
})

describe('the client', () => {
  const here = place()
  const taskmill = (control: Control, ...args: string[]) => runClient(args, { url: control.url, cwd: here.files })

  test('lists the files, and what is wrong with them', async () => {
    using own = place()
    own.write('good.yaml', yaml(`{${YEARLY}}`))
    own.write('bad.yaml', yaml('{cron: "99 0 1 1 *"}'))
    await using control = await own.start()
    await schedule(control, 'good')
    const { files } = (await taskmill(control, 'schedule', 'files')).envelope.data as { files: object[] }
    expect(files).toMatchObject([
      { file: 'bad.yaml', error: expect.stringContaining('cron') },
      { file: 'good.yaml', schedule: 'good' },
    ])
    const table = (await taskmill(control, 'schedule', 'files', '-o', 'table')).stdout
    expect(table).toMatch(/^FILE +SCHEDULE +ERROR\nbad.yaml .*cron/)
    const none = { url: control.url, cwd: own.files }
    expect((await runClient(['schedule', 'files', 'x'], none)).exitCode).toBe(2)
  })

  test('adds, checks and runs a file with a schedule', async () => {
    here.write('n.yaml', yaml(`{name: nightly, ${YEARLY}, overlap: queue}`))
    here.write('bad.yaml', yaml('{cron: "99 0 1 1 *"}'))
    await using control = await startControl()
    const dry = await taskmill(control, 'schedule', 'add', 'n.yaml', '--dry-run')
    expect(dry.envelope.data).toMatchObject({ name: 'nightly', overlap: 'queue', next: expect.any(Array) })
    expect((await control.fetch('/schedules/nightly')).status).toBe(404)
    expect((await taskmill(control, 'schedule', 'add', 'n.yaml')).envelope.data).toMatchObject({ cron: '0 0 1 1 *' })
    const other = await taskmill(
      control,
      'schedule',
      'add',
      'n.yaml',
      '--every',
      '5m',
      '--keep',
      '2',
      '--name',
      'often',
    )
    expect(other.envelope.data).toMatchObject({ name: 'often', every: 300_000, keep: 2, overlap: 'queue' })
    const checked = await taskmill(control, 'check', 'n.yaml')
    expect([checked.exitCode, checked.envelope.data]).toEqual([0, expect.objectContaining({ valid: true, errors: [] })])
    const bad = await taskmill(control, 'check', 'bad.yaml')
    expect([bad.exitCode, bad.envelope.data]).toEqual([
      1,
      expect.objectContaining({ valid: false, errors: [{ message: expect.stringContaining('schedule: cron: ') }] }),
    ])
    expect((await taskmill(control, 'run', 'n.yaml')).exitCode).toBe(0)
    here[Symbol.dispose]()
    expect(existsSync(here.files)).toBe(false)
  })
})

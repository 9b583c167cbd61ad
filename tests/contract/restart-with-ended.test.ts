/**
 * Many ended tasks over restarts: they survive with the short form of their graphs, without it, and with one that does not
 * belong to the state file.
 */
import { expect, test } from 'bun:test'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** Tasks that fill the MiB from which on a state file has a short form. */
const COUNT = 250
const MESSAGE = 'ö'.repeat(2_000)

const tasksOf = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, i) => ({
    id: `${prefix}${i}`,
    type: 'noop',
    params: { message: `${i} ${MESSAGE}` },
  }))

const ended = (control: Control, count: number) =>
  until(
    () => control.list(),
    (records) => records.length === count && records.every(({ status }) => status === 'success'),
  )

test('many ended tasks survive restarts, whatever the short form is', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const short = join(dataDir, 'ended-graphs.ndjson')
  let records: readonly TaskRecord[] = []
  const run = async (
    work: (control: Control) => Promise<unknown> = async () => {},
    signal: NodeJS.Signals = 'SIGTERM',
  ) => {
    await using control = await startControl({ dataDir, flags: ['--retention', '0'] })
    expect(await control.list()).toEqual([...records])
    await work(control)
    records = await control.list()
    await control.stop(signal)
  }
  await run(async (control) => {
    await control.submit(tasksOf('a', COUNT))
    await control.submit(tasksOf('b', 10))
    await ended(control, COUNT + 10)
  })
  expect(statSync(short).mode & 0o777).toBe(0o600)
  const first = readFileSync(short)
  await run() // with the short form
  rmSync(short)
  await run() // without it
  expect(readFileSync(short)).toEqual(first) // nothing has changed, and the next start is as fast as before
  await run(async (control) => {
    expect((await control.fetch('/tasks/a7', { method: 'DELETE' })).status).toBe(204)
    await control.submit(tasksOf('b', 3)) // replaces tasks of a graph in the short form
    await ended(control, COUNT + 9)
  }, 'SIGKILL')
  await run() // with the short form, and a journal after it
  expect(readFileSync(short)).not.toEqual(first)
  writeFileSync(short, first)
  await run() // with that of an older state file
})

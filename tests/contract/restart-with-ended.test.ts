/** Many ended tasks over restarts: they survive a stop and a kill, also where the journal has changed some of them. */
import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TaskRecord } from '../../shared/contract/control.ts'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

/** Tasks that fill many frames of a pack. */
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

test('many ended tasks survive restarts', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const packs = () => readdirSync(dataDir).filter((name) => name.startsWith('pack-'))
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
  const first = packs()
  expect(first).toHaveLength(1)
  await run()
  await run(async () => {}, 'SIGKILL')
  expect(packs()).toEqual(first) // nothing has changed
  await run(async (control) => {
    expect((await control.fetch('/tasks/a7', { method: 'DELETE' })).status).toBe(204)
    await control.submit(tasksOf('b', 3)) // replaces tasks of a graph in the pack
    await ended(control, COUNT + 9)
  }, 'SIGKILL')
  await run() // with a journal after the pack
  expect(packs()).not.toEqual(first)
  await run()
})

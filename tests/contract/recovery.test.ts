/**
 * A kill between two steps of a snapshot leaves segments that the state file holds already. Such a moment is brought about
 * by keeping a copy of the segments and putting it back after the kill; a restart must decide as before.
 */
import { expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const SNAPSHOTS = ['--persist-interval', '20ms', '--max-concurrency', '3']
const NO_SNAPSHOTS = ['--persist-interval', '1h', '--max-concurrency', '3']

const segments = (dir: string) => readdirSync(dir).filter((name) => name.startsWith('journal-'))

function copySegments(from: string, to: string): void {
  mkdirSync(to, { recursive: true })
  for (const name of segments(from)) if (!existsSync(join(to, name))) copyFileSync(join(from, name), join(to, name))
}

/** Starts on the directory, does `before`, ends by SIGKILL; gives the segments as they were then. */
async function killedAfter(
  dataDir: string,
  flags: string[],
  before: (control: Control) => Promise<unknown>,
): Promise<void> {
  await using control = await startControl({ dataDir, flags, env: { SERVICE_SHELL_POLICY: 'open' } })
  await before(control)
  await control.stop('SIGKILL')
}

const stateOf = (dataDir: string): Record<string, unknown> => {
  const path = join(dataDir, 'state.json')
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {}
}

/** Ends once the state file holds what the journal holds now, and the journal is empty. */
const snapshotDone = (dataDir: string) =>
  until(
    // One may be removed while the directory is read.
    () => segments(dataDir).map((name) => statSync(join(dataDir, name), { throwIfNoEntry: false })?.size ?? 0),
    (sizes) => sizes.every((size) => size === 0),
  )

const noop = (id: string, note: string, depends_on: string[] = []) => ({
  id,
  type: 'noop',
  annotations: { note },
  depends_on,
})

test('a graph that took over an id is not hidden by the frame of the older one', async () => {
  using dir = tempDir()
  const [dataDir, aside] = [join(dir.path, 'data'), join(dir.path, 'aside')]
  await killedAfter(dataDir, NO_SNAPSHOTS, async (control) => {
    for (const note of ['first', 'second']) {
      await control.submit([noop('a', note)])
      await control.ended('a')
    }
  })
  copySegments(dataDir, aside)
  await killedAfter(dataDir, SNAPSHOTS, () => snapshotDone(dataDir))
  copySegments(aside, dataDir)
  await using control = await startControl({ dataDir, flags: NO_SNAPSHOTS })
  expect((await control.list()).map(({ id, annotations }) => [id, annotations?.note])).toEqual([['a', 'second']])
})

test('a deleted task does not come back, and neither does the one that it had replaced', async () => {
  using dir = tempDir()
  const [dataDir, aside] = [join(dir.path, 'data'), join(dir.path, 'aside')]
  await killedAfter(dataDir, NO_SNAPSHOTS, async (control) => {
    for (const note of ['first', 'second']) {
      await control.submit([noop('a', note), noop(`${note}-b`, note, ['a'])])
      await control.ended(`${note}-b`)
    }
    expect((await control.fetch('/tasks/a', { method: 'DELETE' })).status).toBe(204)
  })
  copySegments(dataDir, aside)
  await killedAfter(dataDir, SNAPSHOTS, () => snapshotDone(dataDir))
  copySegments(aside, dataDir)
  await using control = await startControl({ dataDir, flags: NO_SNAPSHOTS })
  expect((await control.list()).map(({ id }) => id)).toEqual(['first-b', 'second-b'])
})

test('what becomes of a deleted running task after a snapshot still decides about its dependents', async () => {
  using dir = tempDir()
  const dataDir = join(dir.path, 'data')
  const go = join(dir.path, 'go')
  await killedAfter(dataDir, SNAPSHOTS, async (control) => {
    await control.submit([
      { id: 'gate', type: 'sleep', params: { duration_ms: 600_000 } },
      { id: 'dep', type: 'shell', params: { script: `while [ ! -e ${go} ]; do sleep 0.02; done` } },
      noop('next', '', ['dep']),
      noop('last', '', ['next', 'gate']),
    ])
    await control.reached('dep', 'running')
    expect((await control.fetch('/tasks/dep', { method: 'DELETE' })).status).toBe(204)
    await until(
      () => stateOf(dataDir),
      (state) => 'last' in state && !('dep' in state),
    )
    await Bun.write(go, '')
    await control.ended('next')
  })
  await using control = await startControl({ dataDir, flags: NO_SNAPSHOTS })
  expect((await control.get('next')).status).toBe('success')
  expect((await control.get('last')).status).toBe('pending')
  await control.fetch('/tasks/gate/cancel', { method: 'POST' })
})

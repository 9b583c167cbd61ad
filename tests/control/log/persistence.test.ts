/**
 * Goal: what could not be put on disk for sure is never promised, and never found by the next start.
 * Method: the real journal on real files; only the sync is the test's, as disks do not fail on demand.
 */
import { describe, expect, test } from 'bun:test'
import { closeSync, openSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { Journal } from '../../../control/log/journal.ts'
import { NUMBERS_NOTE } from '../../../control/log/notes.ts'
import { recover } from '../../../control/log/recovery.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { StartProgress } from '../../../shared/process/start-progress.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { durableStore } from '../../support/durable-store.ts'
import { graphOf } from '../../support/graph.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const log = silentLog()

/** A disk of the test: it syncs, or fails to. */
function world(parent?: string) {
  const disk = { isBroken: false }
  const syncFile = async () => {
    if (disk.isBroken) throw new Error('EIO: i/o error, fdatasync')
  }
  const durable = durableStore(syncFile, parent)
  const { dir, store, persistence } = durable
  /** As POST /tasks does it. */
  const submit = async (id: string): Promise<'kept' | number> => {
    const tasks = [{ id, type: 'test' }]
    const graph = graphOf(tasks)
    runSync(store.claim(graph))
    try {
      persistence.assertAccepting()
      await persistence.appendGraph(graph, new TextEncoder().encode(JSON.stringify({ tasks })))
    } catch (error) {
      store.unclaim(graph)
      return (error as { status: number }).status
    }
    store.apply({ kind: 'graph-accepted', graph })
    return 'kept'
  }
  /** What a start would find now. */
  const found = async () => {
    const { graphs } = await recover(dir)
    return graphs.flatMap((graph) => graph.tasks.filter((task) => !task.isDeleted).map(({ id }) => id)).sort()
  }
  const end = async () => {
    disk.isBroken = false
    await durable[Symbol.asyncDispose]()
  }
  return { dir, disk, store, persistence, submit, found, [Symbol.asyncDispose]: end }
}

test('a start tells how far it has come, to those who ask while it reads the journal', async () => {
  await using w = world()
  for (const id of ['a', 'b', 'c']) expect(await w.submit(id)).toBe('kept')
  const progress = new StartProgress()
  const seen: unknown[] = []
  let isOver = false
  const look = () => {
    seen.push({ ...progress })
    if (!isOver) setImmediate(look)
  }
  setImmediate(look)
  await recover(w.dir, progress, 0)
  isOver = true
  const read = (records: number) => ({ phase: 'replaying the journal', records, of: expect.any(Number) })
  expect(seen).toEqual(
    expect.arrayContaining([read(1), read(2), expect.objectContaining({ phase: 'building graphs' })]),
  )
})

const openDescriptors = () => readdirSync('/proc/self/fd').length

describe('a sync that fails', () => {
  test('refuses the graph with 503, and no start finds it', async () => {
    await using w = world()
    expect(await w.submit('before')).toBe('kept')
    w.disk.isBroken = true
    expect(await w.submit('refused')).toBe(503)
    expect(await w.found()).toEqual(['before'])
  })

  test('is never taken as made up for by another sync: only a new state file ends it', async () => {
    await using w = world()
    w.disk.isBroken = true
    expect(await w.submit('refused')).toBe(503)
    w.disk.isBroken = false
    expect(await w.submit('too-soon')).toBe(503) // it asks for the state file
    await until(
      () => w.submit('after'),
      (answer) => answer === 'kept',
    )
    expect(await w.found()).toEqual(['after'])
  })

  test('leaves no descriptor or segment for each refusal', async () => {
    await using w = world()
    w.disk.isBroken = true
    await w.submit('refused')
    const before = openDescriptors()
    for (let i = 0; i < 200; i++) await w.submit(`refused-${i}`)
    expect(openDescriptors()).toBeLessThanOrEqual(before + 2)
    expect(readdirSync(w.dir).filter((name) => name.startsWith('journal-')).length).toBeLessThan(5)
  })

  test('of a cancel or delete says that it was done and may be undone', async () => {
    await using w = world()
    await w.submit('task')
    w.store.apply({ kind: 'deleted', task: w.store.get('task')!, at: Date.now() })
    w.disk.isBroken = true
    await expect(w.persistence.durable()).rejects.toThrow('this was done, but a crash may undo it')
  })
})

describe.skipIf(!canMount)(
  'in a new directory on a disk that fills after the first graph (needs root, to mount one)',
  () => {
    test('the states of its tasks go into the reserve', async () => {
      using temp = tempDir()
      using disk = smallDisk(join(temp.path, 'disk'), 2 * 1024 * 1024)
      await using w = world(disk.path)
      const graph = graphOf([{ id: 'a', type: 'test' }])
      runSync(w.store.claim(graph))
      await w.persistence.appendGraph(graph, new TextEncoder().encode('{"tasks":[{"id":"a","type":"test"}]}'))
      disk.fill()
      w.store.apply({ kind: 'graph-accepted', graph })
      w.persistence.note([null, 'numbers', NUMBERS_NOTE, 1_000])
      w.store.apply({ kind: 'attempt-started', task: graph.tasks[0]!, at: 1 })
      w.store.apply({
        kind: 'ended',
        task: graph.tasks[0]!,
        at: 2,
        ending: { status: 'success', result: 'x'.repeat(5_000) },
      })
      expect(() => w.persistence.assertWritableWithReserve()).not.toThrow()
      expect((await recover(w.dir)).graphs[0]!.tasks[0]!.status).toBe('success')
      disk.free()
    })
  },
)

describe('why nothing is accepted', () => {
  test('is the sync that failed, until the state file is written anew', async () => {
    await using w = world()
    expect(() => w.persistence.probe()).not.toThrow()
    w.disk.isBroken = true
    await w.submit('refused')
    expect(() => w.persistence.assertAccepting()).toThrow('the disk failed to sync')
    expect(() => w.persistence.probe()).toThrow('the disk failed to sync')
    w.disk.isBroken = false
    await until(
      () => w.submit('after'),
      (answer) => answer === 'kept',
    )
    expect(() => w.persistence.probe()).not.toThrow()
  })
})

test('many probes are one write to the disk', async () => {
  await using w = world()
  utimesSync(w.dir, 0, 0) // times of files have a granularity of some milliseconds
  w.persistence.probe()
  expect(statSync(w.dir).mtimeMs).toBeGreaterThan(0)
  utimesSync(w.dir, 0, 0)
  w.persistence.probe()
  expect(statSync(w.dir).mtimeMs).toBe(0)
})

describe('distrust', () => {
  test('is not ended by a snapshot that began before the sync failed', async () => {
    using dir = tempDir()
    const disk = { isBroken: false }
    const syncFile = async () => {
      if (disk.isBroken) throw new Error('EIO')
    }
    const journal = new Journal({ dataDir: dir.path, oldestSegment: 1, firstSegment: 1, log, syncFile })
    journal.write('t', ['x'])
    const early = await journal.startSegment()
    journal.write('t', ['y'])
    disk.isBroken = true
    await expect(journal.sync()).rejects.toThrow('EIO')
    disk.isBroken = false
    await journal.dropSegmentsBefore(early)
    expect(journal.isDistrusted).toBe(true)
    await journal.dropSegmentsBefore(await journal.startSegment())
    expect(journal.isDistrusted).toBe(false)
    await journal.close()
  })
})

describe('after the stop', () => {
  test('a delete, a cancel, a graph are 503, and no other file gets what would have been written', async () => {
    await using w = world()
    expect(await w.submit('task')).toBe('kept')
    const task = w.store.get('task')!
    await w.persistence.stop()
    // One of these has the number of the descriptor that the journal had.
    const paths = Array.from({ length: 8 }, (_, i) => join(w.dir, `other-${i}`))
    const others = paths.map((path) => openSync(path, 'w'))
    expect(() => w.persistence.assertWritable()).toThrow('the service is stopping; nothing was stored')
    expect(() => w.persistence.flushOrThrow()).toThrow('the service is stopping')
    expect(await w.submit('graph')).toBe(503)
    // A change that somebody makes all the same, such as the late end of an attempt that was given up.
    w.store.apply({ kind: 'deleted', task, at: Date.now() })
    w.persistence.flush()
    await expect(w.persistence.durable()).rejects.toMatchObject({ status: 503 })
    for (const fd of others) closeSync(fd)
    expect(paths.map((path) => readFileSync(path, 'utf8'))).toEqual(paths.map(() => ''))
    expect(await w.found()).toEqual(['task'])
  })

  test('what came while the last state was being written is kept', async () => {
    await using w = world()
    for (const id of ['kept', 'deleted']) expect(await w.submit(id)).toBe('kept')
    const stopping = w.persistence.stop()
    await Promise.resolve()
    w.persistence.assertWritable()
    w.store.apply({ kind: 'deleted', task: w.store.get('deleted')!, at: Date.now() })
    await Promise.all([stopping, w.persistence.durable()])
    expect(await w.found()).toEqual(['kept'])
  })
})

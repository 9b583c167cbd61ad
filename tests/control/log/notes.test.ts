/**
 * Goal: a start finds the notes as they were written, whatever was packed, also those in files of earlier formats.
 * Method: random notes and snapshots beside a model; and a directory at each step in which files become notes.
 */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { DATA_FORMAT } from '../../../control/log/data-format.ts'
import { Notes } from '../../../control/log/notes.ts'
import { recover } from '../../../control/log/recovery.ts'
import { sideFiles } from '../../../control/log/side-files.ts'
import { runSync } from '../../../shared/process/steps.ts'
import { crashedCopy, durableStore, isStateFile, liveCopy } from '../../support/durable-store.ts'
import { openEmbedded } from '../../support/embedded-keeper.ts'
import { acceptGraph, graphOf } from '../../support/graph.ts'
import { tempDir } from '../../support/temp.ts'

const step = fc.record({
  kind: fc.constantFrom('note', 'note', 'drop', 'flush', 'task', 'pack', 'pack beside'),
  key: fc.constantFrom('a', 'b', 'c'),
})

test('whatever is noted and packed, a start finds the newest notes, and those before a torn frame', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), fc.boolean(), async (steps, isTorn) => {
      await using each = durableStore()
      const { dir, persistence, snapshots, store } = each
      const model = new Map<string, unknown>()
      const packing: Promise<void>[] = []
      for (const [i, { kind, key }] of steps.entries()) {
        if (kind === 'note') model.set(key, { i })
        else if (kind === 'drop') model.delete(key)
        if (kind === 'note' || kind === 'drop') persistence.note([null, 'callback', key, model.get(key) ?? null])
        else if (kind === 'flush') persistence.flush()
        else if (kind === 'task') acceptGraph(store, [{ id: `t${i}`, type: 'noop' }])
        else if (kind === 'pack beside') packing.push(snapshots.compactOrLog())
        else await snapshots.compactOrLog()
      }
      await Promise.all(packing)
      persistence.flush()
      if (isTorn) {
        persistence.note([null, 'callback', 'torn', {}])
        persistence.flush()
      }
      using copy = crashedCopy([dir], isStateFile, isTorn ? 1 : 0)
      const { notes } = await recover(copy.path)
      expect(new Map(notes.of('callback'))).toEqual(model)
    }),
    { numRuns: 40 },
  )
})

test('a pack has all notes in parts, without callbacks that are over of graphs that are gone', () => {
  const notes = new Notes()
  for (let i = 0; i < 3_000; i++) notes.apply([null, 'callback', `waits${i}`, { body: 'x'.repeat(50) }])
  for (const graphId of ['stored', 'gone']) notes.apply([null, 'callback', `of-${graphId}`, graphId])
  const payloads = [...notes.payloads((graphId) => graphId === 'stored')]
  expect(payloads.length).toBeGreaterThan(2)
  const again = new Notes()
  for (const payload of payloads) for (const row of JSON.parse(payload)) again.apply(row)
  expect(again.of('callback').size).toBe(3_001)
  expect([again.of('callback').get('of-stored'), again.of('callback').get('waits2999')]).toEqual([
    'stored',
    { body: 'x'.repeat(50) },
  ])
  expect(notes.of('callback').has('of-gone')).toBe(false)
})

test('a pack has the key of a graph in it, though the answer with that key is still being made', async () => {
  using dir = tempDir()
  const { store, keeper } = await openEmbedded(dir.path)
  const tasks = [{ id: 'a', type: 'noop' }]
  const request = { scope: 'tasks', key: 'k', body: new TextEncoder().encode(JSON.stringify({ tasks })) }
  const graph = graphOf(tasks)
  runSync(store.claim(graph))
  const [kept, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const answering = keeper.keys.once(request, async (sent) => {
    await keeper.keepGraph(graph, request.body, { idempotency: { ...sent!, answer: 'first', at: Date.now() } })
    store.apply({ kind: 'graph-accepted', graph })
    kept.resolve()
    await answered.promise
    return 'first'
  })
  await kept.promise
  await keeper.stop()
  const again = await openEmbedded(dir.path)
  expect(await again.keeper.keys.once(request, async () => 'second')).toBe('first')
  await again.keeper.stop()
  answered.resolve()
  expect(await answering).toBe('first')
})

describe.each([1, 2])('files of format %d', (format) => {
  const delivery = (id: string) => ({ id, graphId: 'g', event: 'graph_ended', url: 'http://a/', body: '{}', since: 1 })

  test('become notes, whenever the service is killed meanwhile', async () => {
    using dir = tempDir()
    const path = (name: string, of = dir.path) => join(of, name)
    const lines = [delivery('old'), delivery('older'), { over: 'older', graphId: 'g' }].map((line) =>
      JSON.stringify(line),
    )
    writeFileSync(path('callbacks.jsonl'), `${lines.join('\n')}\n{"id":"to`)
    const orphan = { handle_id: 'o', is_taken: true, since: 1 }
    writeFileSync(path('orphans.json'), JSON.stringify({ orphans: [orphan, { ...orphan, handle_id: 'over' }] }))
    const key = { scope: 'tasks', key: 'a\n"ö', hash: 'h', answer: '{}', at: Date.now() }
    writeFileSync(path('idempotency.ndjson'), `${JSON.stringify(key)}\n`)
    if (format > 1) writeFileSync(path('format.json'), JSON.stringify({ format, written_by: '0.1.0' }))
    const { store, keeper } = await openEmbedded(dir.path)
    const { waiting, over } = keeper.callbacks.found
    expect([[...waiting.keys()], [...over.keys()]]).toEqual([['old'], ['older']])
    expect(existsSync(path('format.json'))).toBe(format > 1)
    acceptGraph(store, [{ id: 'a', type: 'noop' }])
    keeper.callbacks.keep({ id: 'new', graphId: 'g', delivery: delivery('new') })
    keeper.callbacks.keep({ id: 'old', graphId: 'g', delivery: undefined })
    keeper.orphans.remove(keeper.orphans.found.slice(1))
    await keeper.kept('act')
    using begun = liveCopy([dir.path])
    const mark = readFileSync(path('format.json', begun.path), 'utf8')
    expect(JSON.parse(mark)).toMatchObject({ format: DATA_FORMAT, from: format })
    await keeper.stop()
    using ended = liveCopy([dir.path])
    using raised = liveCopy([begun.path, dir.path])
    using packed = liveCopy([begun.path, dir.path])
    writeFileSync(path('format.json', packed.path), mark)
    for (const { path: at } of [begun, packed, raised, ended]) {
      for (const start of ['first', 'second']) {
        const again = await openEmbedded(at)
        expect([start, ...again.keeper.callbacks.found.waiting.keys()]).toEqual([start, 'new'])
        expect(again.keeper.orphans.found).toEqual([orphan])
        expect((await recover(at)).notes.of('key').get('tasks a\n"ö')).toEqual(key)
        await again.keeper.stop()
        expect(sideFiles(at).filter((file) => existsSync(file))).toEqual([])
      }
    }
  })
})

describe('a start refuses a file of idempotency keys', () => {
  test.each(['{', '{}', 'null', '{"scope":"a","key":"b","hash":"c","answer":"d"}'])(
    'with the line %s',
    async (line) => {
      using dir = tempDir()
      writeFileSync(join(dir.path, 'idempotency.ndjson'), `${line}\n`)
      await expect(recover(dir.path)).rejects.toThrow('cannot read the file of idempotency keys')
    },
  )
})

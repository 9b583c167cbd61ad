/**
 * Goal: what is appended shares its write and its sync, keeps its place among what is written at once, and is told apart
 * from what never came to the disk.
 * Method: the real journal on real files; its syncs are counted.
 */
import { describe, expect, test } from 'bun:test'
import { appendFileSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Journal, LARGE_FRAME_BYTES } from '../../../control/log/journal.ts'
import { decodeSegment, type FrameKind } from '../../../control/log/journal-format.ts'
import { segmentName } from '../../../control/log/segment.ts'
import { NotWritten } from '../../../control/log/storage-errors.ts'
import { DiskReserve } from '../../../shared/files/disk-reserve.ts'
import { silentLog } from '../../../shared/logs/log.ts'
import { canMount, smallDisk } from '../../support/small-disk.ts'
import { tempDir } from '../../support/temp.ts'

function journalIn(dataDir: string) {
  const disk = { syncs: 0, isBroken: false, failsOnce: false, largeFrames: Promise.resolve() }
  const syncFile = async (fd: number) => {
    disk.syncs++
    const isLarge = readlinkSync(`/proc/self/fd/${fd}`).endsWith('.new')
    if (isLarge) await disk.largeFrames
    const fails = disk.isBroken || (disk.failsOnce && !isLarge)
    if (!isLarge) disk.failsOnce = false
    if (fails) throw new Error('EIO')
  }
  const journal = new Journal({ dataDir, oldestSegment: 1, firstSegment: 1, log: silentLog(), syncFile })
  return { journal, disk }
}

/** Kind and text of all frames of all segments. */
function framesIn(dataDir: string): [FrameKind, string][] {
  return readdirSync(dataDir)
    .filter((name) => name.startsWith('journal-'))
    .sort()
    .flatMap((name) => {
      const segment = decodeSegment(new Uint8Array(readFileSync(join(dataDir, name))))
      if ('damagedAt' in segment) throw new Error(`damaged at ${segment.damagedAt}`)
      expect(segment.end).toBe('whole')
      return segment.frames.map(({ kind, payload }): [FrameKind, string] => [kind, new TextDecoder().decode(payload)])
    })
}

const sizesIn = (dataDir: string): number[] =>
  readdirSync(dataDir)
    .filter((name) => name.startsWith('journal-'))
    .sort()
    .map((name) => statSync(join(dataDir, name)).size)

const faultOf = (settled: PromiseSettledResult<void>): string =>
  settled.status === 'rejected' ? settled.reason.message : 'no fault'

describe('what is appended', () => {
  test('within one turn of the event loop shares its syncs', async () => {
    using dir = tempDir()
    const { journal, disk } = journalIn(dir.path)
    await Promise.all(Array.from({ length: 32 }, (_, i) => journal.append('g', [`graph ${i}`])))
    // One, but for a turn that takes longer than a sync does: then that begins with what is there.
    expect(disk.syncs).toBeLessThan(8)
    expect(framesIn(dir.path)).toEqual(Array.from({ length: 32 }, (_, i) => ['g', `graph ${i}`]))
    await journal.close()
  })

  test('stands before what is written at once after it, and in the segment in which it was appended', async () => {
    using dir = tempDir()
    const { journal } = journalIn(dir.path)
    const first = journal.append('g', ['first'])
    journal.write('t', ['second'])
    const third = journal.append('g', ['thi', new TextEncoder().encode('rd')])
    const segment = journal.startSegment()
    const fourth = journal.append('g', ['fourth'])
    await Promise.all([first, third, fourth, segment])
    expect(framesIn(dir.path).map(([, text]) => text)).toEqual(['first', 'second', 'third', 'fourth'])
    await journal.dropSegmentsBefore(await segment)
    expect(framesIn(dir.path).map(([, text]) => text)).toEqual(['fourth'])
    await journal.close()
  })

  test('is written whole, however large and however little is ASCII', async () => {
    using dir = tempDir()
    const { journal } = journalIn(dir.path)
    const texts = ['é'.repeat(300_000), 'small', '漢'.repeat(3_000_000), '']
    await Promise.all(texts.map((text) => journal.append('g', [text])))
    expect(framesIn(dir.path).map(([, text]) => text)).toEqual(texts)
    await journal.close()
  })

  test('does not count when its sync fails, and nothing is taken any more until a snapshot makes up for it', async () => {
    using dir = tempDir()
    const { journal, disk } = journalIn(dir.path)
    disk.isBroken = true
    const refused = [journal.append('g', ['a']), journal.append('g', ['b'])]
    expect((await Promise.allSettled(refused)).map(faultOf)).toEqual(['EIO', 'EIO'])
    disk.isBroken = false
    await expect(journal.append('g', ['c'])).rejects.toThrow('the disk failed to sync')
    await journal.dropSegmentsBefore(await journal.startSegment())
    await journal.append('g', ['d'])
    expect(framesIn(dir.path).map(([, text]) => text)).toEqual(['d'])
    await journal.close()
  })

  // Only root may mount a small disk.
  test.skipIf(!canMount)('is not written at all when the disk does not take all of it', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using disk = smallDisk(dataDir, 256 * 1024)
    const { journal } = journalIn(dataDir)
    await journal.append('g', ['before'])
    disk.fill()
    const refused = [journal.append('g', ['small']), journal.append('g', ['x'.repeat(100_000)])]
    for (const one of await Promise.allSettled(refused)) {
      expect((one as PromiseRejectedResult).reason).toBeInstanceOf(NotWritten)
      expect(faultOf(one)).toContain('ENOSPC')
    }
    disk.free()
    await journal.append('g', ['after'])
    expect(framesIn(dataDir).map(([, text]) => text)).toEqual(['before', 'after'])
    await journal.close()
  })
})

describe('a large frame', () => {
  const LARGE = 'é'.repeat(LARGE_FRAME_BYTES / 2 + 1)
  const LARGE_BYTES = new TextEncoder().encode(LARGE)

  test('holds up none that is appended after it, and becomes a segment of its own, in order', async () => {
    using dir = tempDir()
    const { journal, disk } = journalIn(dir.path)
    const { promise, resolve } = Promise.withResolvers<void>()
    disk.largeFrames = promise
    const told: string[] = []
    await journal.append('g', ['before'])
    const large = journal.append('g', ['head', LARGE_BYTES, '}']).then(() => told.push('large'))
    expect(journal.length).toBe(sizesIn(dir.path)[0]!) // nothing of it was written while the caller waited
    await journal.append('g', ['meanwhile']).then(() => told.push('meanwhile'))
    journal.write('t', ['written'])
    resolve()
    await large
    await journal.append('g', ['after'])
    expect(told).toEqual(['meanwhile', 'large'])
    const texts = ['before', 'meanwhile', 'written', `head${LARGE}}`, 'after']
    expect(framesIn(dir.path)).toEqual(texts.map((text) => [text === 'written' ? 't' : 'g', text]))
    expect(sizesIn(dir.path)).toHaveLength(3)
    expect(journal.size).toBeGreaterThan(LARGE_FRAME_BYTES)
    const segment = await journal.startSegment()
    expect(journal.size).toBe(0)
    await journal.dropSegmentsBefore(segment)
    expect(framesIn(dir.path)).toEqual([])
    await journal.close()
  })

  test('stays when a snapshot began before it was there', async () => {
    using dir = tempDir()
    const { journal } = journalIn(dir.path)
    const large = journal.append('g', [LARGE_BYTES])
    const segment = await journal.startSegment()
    await large
    await journal.dropSegmentsBefore(segment)
    expect(framesIn(dir.path)).toEqual([['g', LARGE]])
    await journal.close()
  })

  test.each([
    ['is not relied on any more', 'the disk failed to sync'],
    ['was closed', 'the service is stopping'],
  ])('is refused, and leaves nothing, when the journal %s meanwhile', async (how, fault) => {
    using dir = tempDir()
    const { journal, disk } = journalIn(dir.path)
    journal.write('t', ['before'])
    const { promise, resolve } = Promise.withResolvers<void>()
    disk.largeFrames = promise
    const large = journal.append('g', [LARGE_BYTES])
    if (how === 'was closed') await journal.close()
    else {
      disk.failsOnce = true
      await journal.sync().catch(() => {})
    }
    resolve()
    const [ending] = await Promise.allSettled([large])
    expect(ending).toMatchObject({ status: 'rejected', reason: { name: 'Error', message: fault } })
    expect(readdirSync(dir.path)).toEqual([segmentName(1)])
    if (!journal.isClosed) await journal.close()
  })

  test('is not written, and leaves nothing, when its sync fails', async () => {
    using dir = tempDir()
    const { journal, disk } = journalIn(dir.path)
    disk.isBroken = true
    await expect(journal.append('g', [LARGE_BYTES])).rejects.toBeInstanceOf(NotWritten)
    disk.isBroken = false
    await journal.append('g', ['after'])
    expect(framesIn(dir.path)).toEqual([['g', 'after']])
    expect(readdirSync(dir.path)).toHaveLength(1)
    await journal.close()
  })

  test('that a crash left half written is removed', async () => {
    using dir = tempDir()
    writeFileSync(join(dir.path, 'journal-large-7.new'), 'half')
    const { journal } = journalIn(dir.path)
    expect(readdirSync(dir.path)).toEqual([segmentName(1)])
    await journal.close()
  })

  // Only root may mount a small disk.
  test.skipIf(!canMount)('leaves no file on a full disk, and the journal goes on', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using _disk = smallDisk(dataDir, 1024 * 1024)
    const { journal } = journalIn(dataDir)
    await expect(journal.append('g', [LARGE_BYTES])).rejects.toThrow('ENOSPC')
    await journal.append('g', ['after'])
    expect(framesIn(dataDir)).toEqual([['g', 'after']])
    expect(readdirSync(dataDir)).toHaveLength(1)
    await journal.close()
  })
})

describe.skipIf(!canMount)('a segment in the reserve', () => {
  test('stays the newest one while the disk takes no other', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using disk = smallDisk(dataDir, 1024 * 1024)
    const { journal } = journalIn(dataDir)
    const reserve = new DiskReserve(dataDir)
    journal.write('t', ['before'])
    disk.fill()
    expect(journal.continueInReserve(reserve)).toBe(true)
    journal.write('t', ['in the reserve'])
    await expect(journal.startSegment()).rejects.toThrow('ENOSPC')
    journal.write('t', ['later'])
    disk.free()
    await journal.startSegment()
    disk.fill()
    journal.write('t', ['in the next one'])
    expect(framesIn(dataDir).map(([, text]) => text)).toEqual(['before', 'in the reserve', 'later', 'in the next one'])
    await journal.close()
  })
})

describe('room for more', () => {
  const ROW = 'x'.repeat(10_000)

  test('is made once a segment is no longer small, again when it is used up, and is gone at the end', async () => {
    using dir = tempDir()
    const { journal } = journalIn(dir.path)
    const texts = Array.from({ length: 100 }, (_, i) => `${i} ${ROW}`)
    let growths = 0
    let size = 0
    for (const text of texts) {
      await journal.append('g', [text])
      const [now] = sizesIn(dir.path)
      if (journal.length < 64 * 1024) expect(now).toBe(journal.length)
      else expect(now).toBeGreaterThan(journal.length)
      if (now !== size) growths++
      size = now!
    }
    expect(growths).toBeLessThan(20)
    expect(framesIn(dir.path).map(([, text]) => text)).toEqual(texts)
    await journal.close()
    expect(sizesIn(dir.path)).toEqual([journal.length])
    expect(framesIn(dir.path).map(([, text]) => text)).toEqual(texts)
  })

  test('is made for each segment anew, and what is left of it behind the last frame is no damage', async () => {
    using dir = tempDir()
    const { journal } = journalIn(dir.path)
    for (let i = 0; i < 20; i++) journal.write('t', [ROW])
    const second = await journal.startSegment()
    expect(sizesIn(dir.path)[1]).toBe(0)
    for (let i = 0; i < 20; i++) await journal.append('g', [ROW])
    expect(sizesIn(dir.path).every((size) => size > 20 * ROW.length + 64 * 1024)).toBe(true)
    expect(framesIn(dir.path)).toHaveLength(40)
    await journal.dropSegmentsBefore(second)
    await journal.close()
  })

  test('with anything else than zeros in it is a torn tail', async () => {
    using dir = tempDir()
    const { journal } = journalIn(dir.path)
    for (let i = 0; i < 20; i++) journal.write('t', [ROW])
    const path = join(dir.path, readdirSync(dir.path)[0]!)
    appendFileSync(path, 'x')
    const segment = decodeSegment(new Uint8Array(readFileSync(path)))
    expect(segment).toMatchObject({ end: 'torn', wholeBytes: journal.length })
    await journal.close()
  })

  // Only root may mount a small disk.
  test.skipIf(!canMount)('keeps the space for smaller frames when a frame does not fit on a full disk', async () => {
    using dir = tempDir()
    const dataDir = join(dir.path, 'data')
    using disk = smallDisk(dataDir, 256 * 1024)
    const { journal } = journalIn(dataDir)
    const kept: string[] = []
    const refused: string[] = []
    for (let i = 0; i < 40; i++) {
      const text = `${i} ${ROW}`
      await journal.append('g', [text]).then(
        () => kept.push(text),
        () => refused.push(text),
      )
    }
    expect(kept.length).toBeGreaterThan(10)
    expect(refused.length).toBeGreaterThan(10)
    expect(framesIn(dataDir).map(([, text]) => text)).toEqual(kept)
    const [size] = sizesIn(dataDir)
    expect(size).toBeGreaterThan(journal.length)
    disk.fill()
    const small = 'x'.repeat(size! - journal.length - 64)
    await journal.append('g', [small])
    expect(framesIn(dataDir).map(([, text]) => text)).toEqual([...kept, small])
    expect(sizesIn(dataDir)).toEqual([size!])
    disk.free()
    await journal.close()
  })
})

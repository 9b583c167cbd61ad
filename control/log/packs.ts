/**
 * Packs: the compacted part of the log, in `<data-dir>/pack-<from>-<to>.log`.
 *
 * A pack says what the segments of the journal with these numbers said, and replaces them. The packs follow each other
 * without a gap, and the segments follow the last pack. A snapshot writes a pack with the graphs that have changed since the
 * last one, and the numbers of graphs that are gone. The newest frames of a graph count, so the other packs stay as they are.
 *
 * Thus each snapshot makes older frames superfluous and adds a file. So a pack also takes over the frames of some packs
 * before it: of all from the first one on that is smaller than the later ones together, or of whose bytes more than half are
 * superfluous. Then there are few packs, at most half of their bytes are superfluous, and a frame is copied seldom.
 *
 * A crash leaves the old files or the new one: a pack is synced and renamed, and files within its range no longer count.
 *
 * Each pack has all notes, and only the notes of the newest pack count.
 *
 * The first frame of a pack (`p`) has the highest numbers of changes and graphs before the segments that follow. The last one
 * (`e`) ends each whole pack: a start refuses a pack without it.
 */
import { readdirSync, unlinkSync } from 'node:fs'
import { type FileHandle, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { replaceFile } from '../../shared/files/atomic-file.ts'
import { isYieldDue, nextTurn, SLICE_MS } from '../../shared/process/steps.ts'
import type { Graph } from '../task/graph.ts'
import type { TaskStore } from '../task/task-store.ts'
import { compactedGraph } from './compacted-graph.ts'
import { FrameBuffer, type FrameKind } from './journal-format.ts'
import { graphOrdinalIn } from './journaled-graph.ts'
import type { Notes } from './notes.ts'
import { framesOfPack } from './pack-reader.ts'
import { FIRST_SEGMENT } from './segment.ts'

/** Segments, from the first number to the last one. */
export interface PackRange {
  readonly from: number
  readonly to: number
}

const NAME = /^pack-(\d{10})-(\d{10})\.log$/
const UNFINISHED = /^pack-\d{10}-\d{10}\.log\.new$/

const digits = (number: number): string => String(number).padStart(10, '0')

export const packName = ({ from, to }: PackRange): string => `pack-${digits(from)}-${digits(to)}.log`

/** The packs in `dataDir` that count, oldest first. */
export function packsIn(dataDir: string): PackRange[] {
  const all = readdirSync(dataDir).flatMap((name) => {
    const match = NAME.exec(name)
    return match === null ? [] : { from: Number(match[1]), to: Number(match[2]) }
  })
  const isWithin = (a: PackRange, b: PackRange) => a !== b && a.from >= b.from && a.to <= b.to
  return all.filter((pack) => !all.some((other) => isWithin(pack, other))).sort((a, b) => a.from - b.from)
}

/** Where the packs have a graph. */
export interface PackedGraph {
  readonly ordinal: number
  /** The last segment in the range of the pack; 0 if no pack has the graph. */
  readonly pack: number
  /** Bytes of its frames. */
  readonly packBytes: number
}

/** The payload of the first frame. */
export interface PackStart {
  readonly last_seq: number
  readonly last_ordinal: number
}

export interface Pack extends PackRange {
  readonly bytes: number
  /** Bytes of the frames that count. */
  needed: number
}

/** What a snapshot writes. */
export interface PackContent {
  readonly store: TaskStore
  /** Graphs that have changed since the last snapshot. The pack notes graphs without tasks as gone. */
  readonly changed: ReadonlySet<Graph>
  /** Graphs of packs that a start found to be gone. */
  readonly gone: readonly PackedGraph[]
  readonly notes: Notes
  readonly start: PackStart
  /** Called after the graphs were written. */
  readonly beforeNotes: () => Promise<void>
}

export class Packs {
  readonly #dataDir: string
  #packs: readonly Pack[]

  /** `found` are those that count. Removes what a crash left of others. */
  constructor(dataDir: string, found: readonly Pack[]) {
    this.#dataDir = dataDir
    this.#packs = found
    for (const name of readdirSync(dataDir)) if (UNFINISHED.test(name)) unlinkSync(join(dataDir, name))
  }

  /** Bytes of the newest pack. */
  get newestBytes(): number {
    return this.#packs.at(-1)?.bytes ?? 0
  }

  /** Writes a pack for the segments up to `to`. If it throws, the packs are as before. */
  async write(to: number, content: PackContent): Promise<void> {
    const { changed, gone, beforeNotes } = content
    await this.removeOthers() // a write that failed at its end may have left one, whose range would overlap
    const first = this.#firstMerged([...changed, ...gone])
    const [kept, merged] = [this.#packs.slice(0, first), this.#packs.slice(first)]
    const range = { from: (kept.at(-1)?.to ?? FIRST_SEGMENT - 1) + 1, to }
    const packed = new Map<Graph, number>()
    let bytes = 0
    let needed = 0
    await replaceFile(join(this.#dataDir, packName(range)), async (file) => {
      const out = new PackWriter(file)
      out.add('p', JSON.stringify(content.start))
      await this.#copy(merged, { content, out, packed, isOldest: kept.length === 0 })
      const left: PackedGraph[] = [...gone]
      for (const graph of changed) {
        const begin = out.bytes
        for (const payload of compactedGraph(content.store, graph)) {
          out.add('c', payload)
          if (out.isPauseDue) await out.pause()
        }
        if (out.bytes > begin) packed.set(graph, out.bytes - begin)
        else left.push(graph)
      }
      // Any older pack may have superseded frames of the graph, which would count again.
      const ordinals = kept.length === 0 ? [] : left.filter(({ pack }) => pack > 0).map(({ ordinal }) => ordinal)
      if (ordinals.length > 0) out.add('o', JSON.stringify(ordinals))
      await beforeNotes()
      needed = out.bytes // the next pack has the notes, too
      for (const payload of content.notes.payloads((id) => content.store.graph(id) !== undefined)) {
        out.add('n', payload)
        if (out.isPauseDue) await out.pause()
      }
      out.add('e', '')
      await out.end()
      bytes = out.bytes
    })
    const byNumber = new Map(kept.map((pack) => [pack.to, pack]))
    for (const { pack, packBytes } of [...changed, ...gone]) {
      const before = byNumber.get(pack)
      if (before !== undefined) before.needed -= packBytes
    }
    for (const graph of changed) graph.pack = 0
    for (const [graph, packBytes] of packed) Object.assign(graph, { pack: to, packBytes })
    this.#packs = [...kept, { ...range, bytes, needed }]
  }

  /** The index of the first pack that the next one takes over. `superseded` are graphs whose frames no longer count. */
  #firstMerged(superseded: readonly PackedGraph[]): number {
    const needed = new Map(this.#packs.map((pack) => [pack.to, pack.needed]))
    for (const { pack, packBytes } of superseded) needed.set(pack, (needed.get(pack) ?? 0) - packBytes)
    let first = this.#packs.length
    let later = 0
    for (let i = this.#packs.length - 1; i >= 0; i--) {
      const { to, bytes } = this.#packs[i]!
      const ofPack = needed.get(to)!
      if (bytes < later || 2 * ofPack < bytes) first = i
      later += ofPack
    }
    return first
  }

  /** Copies the frames of `merged` that count. */
  async #copy(merged: readonly Pack[], { content, out, packed, isOldest }: CopyParts): Promise<void> {
    if (merged.length === 0) return
    const numbers = new Set(merged.map((pack) => pack.to))
    const graphs = new Map<number, Graph>()
    let i = 0
    for (const graph of content.store.graphs) {
      if (numbers.has(graph.pack) && !content.changed.has(graph)) graphs.set(graph.ordinal, graph)
      if (isYieldDue(i++) && out.isPauseDue) await out.pause()
    }
    for (const pack of merged) {
      for (const { kind, payload } of framesOfPack(join(this.#dataDir, packName(pack)))) {
        const graph = kind === 'c' ? graphs.get(graphOrdinalIn(payload)) : undefined
        if (graph?.pack === pack.to) packed.set(graph, graph.packBytes)
        else if (kind !== 'o' || isOldest) continue
        out.add(kind, payload)
        if (out.isPauseDue) await out.pause()
      }
    }
  }

  /** Removes the files that newer packs have taken over. */
  async removeOthers(): Promise<void> {
    const current = new Set(this.#packs.map(packName))
    const others = (await readdir(this.#dataDir)).filter((name) => NAME.test(name) && !current.has(name))
    for (const name of others) await unlink(join(this.#dataDir, name))
  }
}

interface CopyParts {
  readonly content: PackContent
  readonly out: PackWriter
  /** Gets the graphs that were copied, with the bytes of their frames. */
  readonly packed: Map<Graph, number>
  /** Whether no older pack remains. */
  readonly isOldest: boolean
}

/** Bytes of frames written with one call. */
const WRITE_BYTES = 256 * 1024

/** Writes frames to a file, in time slices. */
class PackWriter {
  readonly #file: FileHandle
  readonly #frames = new FrameBuffer()
  #written = 0
  #sliceEnd = performance.now() + SLICE_MS

  constructor(file: FileHandle) {
    this.#file = file
  }

  get bytes(): number {
    return this.#written + this.#frames.length
  }

  add(kind: FrameKind, payload: string | Uint8Array): void {
    this.#frames.add(kind, [payload], 0)
  }

  get isPauseDue(): boolean {
    return this.#frames.length >= WRITE_BYTES || performance.now() >= this.#sliceEnd
  }

  async pause(): Promise<void> {
    if (this.#frames.length >= WRITE_BYTES) await this.end()
    if (performance.now() >= this.#sliceEnd) await nextTurn()
    this.#sliceEnd = performance.now() + SLICE_MS
  }

  async end(): Promise<void> {
    const { bytes } = this.#frames
    await this.#file.writeFile(bytes)
    this.#written += bytes.length
    this.#frames.clear()
  }
}

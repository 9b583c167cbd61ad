/** Puts the graphs of a pack together from its frames, and hands them to the replay. */
import type { Graph } from '../task/graph.ts'
import { checkedEntry } from './checked-entry.ts'
import { CompactedGraph, type GraphPart } from './compacted-graph.ts'
import type { NoteRow } from './notes.ts'
import type { PackFrame } from './pack-reader.ts'
import type { PackStart } from './packs.ts'
import type { Replay } from './replay.ts'
import type { StoredTask, TaskEntry } from './stored-task.ts'

interface Current {
  readonly ordinal: number
  bytes: number
  readonly built: CompactedGraph | undefined
  readonly entries: StoredTask[]
}

export class PackedGraphs {
  /** The last segment in the range of the pack. */
  readonly #pack: number
  readonly #replay: Replay
  readonly #refuse: (detail: string) => Error
  /** Graphs whose frames in older packs do not count. */
  readonly #known: number[] = []
  #current: Current | undefined

  constructor(pack: number, replay: Replay, refuse: (detail: string) => Error) {
    this.#pack = pack
    this.#replay = replay
    this.#refuse = refuse
  }

  add({ kind, payload, bytes }: PackFrame): void {
    const content = JSON.parse(new TextDecoder().decode(payload)) as unknown
    if (kind === 'p') {
      const { last_seq, last_ordinal } = content as PackStart
      this.#replay.raise(last_seq, last_ordinal)
    } else if (kind === 'o') this.#known.push(...(content as number[]))
    else if (kind === 'n') this.#replay.addPackedNotes(content as NoteRow[])
    else if (kind === 'c') this.#addPart(content as GraphPart, bytes)
    else throw this.#refuse(`it holds a frame of kind ${kind}`)
  }

  #addPart({ graph_ordinal: ordinal, graph, rows = [], entries = [] }: GraphPart, bytes: number): void {
    if (this.#current?.ordinal !== ordinal) {
      this.#endGraph()
      this.#current = { ordinal, bytes: 0, built: graph && new CompactedGraph(ordinal, graph), entries: [] }
      this.#known.push(ordinal)
    }
    const current = this.#current
    current.bytes += bytes
    current.built?.add(rows)
    for (const entry of entries) {
      current.entries.push(checkedEntry(String((entry as TaskEntry).id), entry, this.#refuse))
      this.#replay.collectIfDue()
    }
  }

  #endGraph(): void {
    if (this.#current === undefined) return
    const { ordinal, bytes, built, entries } = this.#current
    const place = { ordinal, pack: this.#pack, packBytes: bytes }
    const lastSeq = built?.lastSeq ?? entries.reduce((highest, { seq = 0 }) => Math.max(highest, seq), 0)
    const content: Graph | readonly StoredTask[] = built?.ended() ?? entries
    this.#replay.addPacked(place, content, lastSeq, this.#refuse)
    this.#current = undefined
  }

  /** Called after the last frame. Returns the graphs that the pack has, or knows to be gone. */
  end(): readonly number[] {
    this.#endGraph()
    return this.#known
  }
}

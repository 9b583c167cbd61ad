/**
 * Writes `<data-dir>/ended-graphs.ndjson`: the short form of the graphs in the state file that have ended.
 *
 * The state file is the truth. This file saves a start the time to read most of it. A start uses it only if its last line has
 * the checksums of both files, and not for a state file that somebody edited or that an older service wrote. So it needs no
 * sync, and if the disk refuses it, the next start only takes longer. Only the last snapshot of a service writes it, because
 * it adds half to the CPU time of a snapshot.
 *
 * Each line is a JSON object. A line with `from` begins a section: the offset of its first entry in the state file. If
 * the line has a `graph`, the section is that graph, and this line and the next ones have its `rows`, unless one of them
 * says `long`: then the graph has to be read from the state file, as all sections without a `graph`.
 */
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Graph, Task } from '../graph/graph.ts'
import { fitsRow, haveSameRest, restJson, rowStart, type ShortHead, type ShortRow, shortHead } from './short-form.ts'
import type { StoredTask } from './stored-task.ts'

export const shortFormPath = (dataDir: string): string => join(dataDir, 'ended-graphs.ndjson')

/** The version of the form. A start ignores a file of another version. */
export const SHORT_FORM = 1

export interface ShortLine {
  /** Offset in the state file. */
  readonly from?: number
  readonly graph?: ShortHead
  readonly rows?: readonly ShortRow[]
  readonly long?: true
}

/** The last line. */
export interface ShortFormEnd {
  readonly form: number
  /** CRC-32 of the lines before. */
  readonly checksum: number
  readonly state_bytes: number
  /** CRC-32 of the state file. */
  readonly state_checksum: number
  /** Offset behind the line of the last entry of the state file. */
  readonly entries_end: number
}

/** Minimum bytes of a state file with a short form. A start reads a smaller one in a few milliseconds. */
export const MIN_STATE_BYTES = 1024 * 1024

/** Characters of rows in a line, and of lines written with one call. */
const LINE_CHARACTERS = 64 * 1024
const WRITE_CHARACTERS = 256 * 1024

export class ShortFormWriter {
  readonly #path: string
  readonly #minBytes: number
  #file: FileHandle | undefined
  #isRefused = false
  #checksum = 0
  /** Whole lines. */
  #lines = ''
  /** The line that gets rows; empty if the next row begins a new one. */
  #line = ''
  #separator = ''
  /** The section of the current entries: a graph that has a short form, or others. Undefined at the beginning. */
  #section: { readonly graph: Graph; readonly head: ShortHead } | 'others' | undefined
  #rowCount = 0
  /** The last row: its task, and its rest as JSON. */
  #lastTask: Task | undefined
  #lastRest = ''

  constructor(dataDir: string, minBytes = MIN_STATE_BYTES) {
    this.#path = shortFormPath(dataDir)
    this.#minBytes = minBytes
  }

  /** Adds the next task of the state file, whose `entry` is at offset `from`. The entry is of no use afterwards. */
  add(task: Task, entry: StoredTask, from: number): void {
    const { graph } = task
    if (graph.live > 0 || graph.fanOuts !== undefined) this.#beginOthers(from)
    else if (this.#graph !== graph) this.#beginGraph(graph, from)
    if (this.#section === 'others' || this.#section === undefined) return
    const isSame = this.#lastTask !== undefined && haveSameRest(task, this.#lastTask)
    const rest = isSame ? this.#lastRest : restJson(entry, this.#section.head)
    if (this.#line === '') this.#beginLine('{')
    const dependencies = task.dependsOn === undefined ? 'null' : JSON.stringify(task.dependsOn)
    const isAlike = rest === this.#lastRest
    this.#line += this.#separator + rowStart(task, this.#section.head)
    this.#separator = ','
    if (!isAlike) this.#line += `,${dependencies},${rest}`
    else if (task.dependsOn !== undefined) this.#line += `,${dependencies}`
    this.#line += ']'
    this.#lastRest = rest
    this.#lastTask = task
    if (fitsRow(task)) this.#rowCount++
    if (this.#line.length >= LINE_CHARACTERS) this.#endLine()
  }

  get #graph(): Graph | undefined {
    return this.#section === 'others' ? undefined : this.#section?.graph
  }

  #beginOthers(from: number): void {
    if (this.#section === 'others') return
    this.#endSection()
    this.#section = 'others'
    this.#lines += `{"from":${from}}\n`
  }

  #beginGraph(graph: Graph, from: number): void {
    this.#endSection()
    const head = shortHead(graph)
    this.#section = { graph, head }
    this.#beginLine(`{"from":${from},"graph":${JSON.stringify(head)},`)
    this.#rowCount = 0
  }

  #endSection(): void {
    this.#endLine()
    // A deleted task has no entry. `recoverGraph` decides what that means for the other tasks.
    if (this.#graph !== undefined && this.#rowCount < this.#graph.tasks.length) this.#lines += '{"long":true}\n'
  }

  #beginLine(members: string): void {
    this.#line = `${members}"rows":[`
    this.#separator = ''
  }

  #endLine(): void {
    if (this.#line !== '') this.#lines += `${this.#line}]}\n`
    this.#line = ''
  }

  /** Writes lines if there are enough of them. `stateBytes` of the state file are written. */
  async writeSome(stateBytes: number): Promise<void> {
    if (this.#lines.length >= WRITE_CHARACTERS && stateBytes >= this.#minBytes)
      await this.#unlessRefused(() => this.#write())
  }

  async #write(): Promise<void> {
    this.#file ??= await open(this.#aside, 'w', 0o600)
    const bytes = Buffer.from(this.#lines)
    this.#lines = ''
    this.#checksum = Bun.hash.crc32(bytes, this.#checksum)
    await this.#file.writeFile(bytes)
  }

  /** Called once the state file is in its place. */
  async end(state: Omit<ShortFormEnd, 'form' | 'checksum'>): Promise<void> {
    if (state.state_bytes < this.#minBytes) return
    await this.#unlessRefused(async () => {
      this.#endSection()
      await this.#write()
      const end: ShortFormEnd = { form: SHORT_FORM, checksum: this.#checksum, ...state }
      await this.#file!.writeFile(`${JSON.stringify(end)}\n`)
      await this.#file!.close()
      await rename(this.#aside, this.#path)
    })
  }

  /** Removes what was written. Does nothing after `end`. */
  async giveUp(): Promise<void> {
    this.#isRefused = true
    await this.#file?.close().catch(() => {})
    if (this.#file !== undefined) await unlink(this.#aside).catch(() => {})
  }

  async #unlessRefused(write: () => Promise<void>): Promise<void> {
    if (this.#isRefused) return
    try {
      await write()
    } catch {
      await this.giveUp()
    }
  }

  get #aside(): string {
    return `${this.#path}.new`
  }
}

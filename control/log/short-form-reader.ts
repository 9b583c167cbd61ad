/** Reads the short form of graphs that have ended, and the rest of the state file (`short-form-writer.ts`). */
import { closeSync, openSync, readSync } from 'node:fs'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import type { Graph } from '../graph/graph.ts'
import { checkedEntry } from './checked-entry.ts'
import { ShortGraph } from './short-form.ts'
import { SHORT_FORM, type ShortFormEnd, type ShortLine, shortFormPath } from './short-form-writer.ts'
import { linesOf, memberIn, READ_BYTES } from './snapshot-reader.ts'
import { statePath } from './snapshot-writer.ts'
import type { StoredTask } from './stored-task.ts'
import { refuseFile } from './unreadable-file.ts'

export interface ShortFormVisitor {
  /** Called with each entry that has no short form, in the order of the state file, as are all graphs. */
  readonly entry: (id: string, entry: StoredTask) => void
  /** Called with each graph that has one, and the highest number of its changes. False: it needs the entries. */
  readonly ended: (graph: Graph, lastSeq: number) => boolean
}

/**
 * Reads all that the state file holds, most of it from the short form. Returns false, without a call of `visitor`, if there
 * is none that belongs to the state file. Throws if a file cannot be read, maybe after calls.
 */
export function readShortForm(dataDir: string, visitor: ShortFormVisitor): boolean {
  const path = shortFormPath(dataDir)
  const state = statePath(dataDir)
  const refuse = refuseFile('state file', state)
  const size = Bun.file(path).size
  const end = size === 0 ? undefined : endOf(path, size)
  if (end === undefined || end.form !== SHORT_FORM || Bun.file(state).size !== end.state_bytes) return false
  if (checksumOf(path, end.at) !== end.checksum || checksumOf(state, end.state_bytes) !== end.state_checksum)
    return false
  const entries = (from: number, to: number) => {
    for (const line of linesOf(state, { from, to })) {
      const [id, entry] = memberIn(line)
      visitor.entry(id, checkedEntry(id, entry, refuse))
    }
  }
  let section: { readonly from: number; readonly short: ShortGraph | undefined; isLong: boolean } | undefined
  let last: ShortGraph['last']
  const endSection = (to: number) => {
    if (section === undefined) return
    const { from, short, isLong } = section
    if (short === undefined || isLong || !visitor.ended(short.ended(), short.lastSeq)) entries(from, to)
  }
  for (const line of linesOf(path, { to: end.at })) {
    const { from, graph, rows = [], long } = JSON.parse(line) as ShortLine
    if (from !== undefined) {
      endSection(from)
      section = { from, short: graph && new ShortGraph(graph, last), isLong: false }
    }
    if (long) section!.isLong = true
    section!.short?.add(rows)
    last = section!.short?.last ?? last
  }
  endSection(end.entries_end)
  return true
}

/** Bytes that hold the last line. */
const END_BYTES = 1024

/** The last line, with its offset `at`. Undefined if it is none that this version knows. */
function endOf(path: string, size: number): (ShortFormEnd & { readonly at: number }) | undefined {
  const from = Math.max(0, size - END_BYTES)
  const text = bytesAt(path, from, size).toString('latin1')
  const start = text.lastIndexOf('\n', text.length - 2) + 1
  const end = jsonOrUndefined(text.slice(start))
  return isObject(end) ? { ...(end as unknown as ShortFormEnd), at: from + start } : undefined
}

function bytesAt(path: string, from: number, to: number): Buffer {
  const fd = openSync(path, 'r')
  try {
    const bytes = Buffer.alloc(to - from)
    return bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, from))
  } finally {
    closeSync(fd)
  }
}

/** CRC-32 of the first `size` bytes. */
function checksumOf(path: string, size: number): number {
  const fd = openSync(path, 'r')
  try {
    const block = new Uint8Array(READ_BYTES)
    let checksum = 0
    for (let at = 0; at < size; ) {
      const read = readSync(fd, block, 0, Math.min(block.length, size - at), at)
      if (read === 0) throw new Error(`${path} became shorter`)
      checksum = Bun.hash.crc32(block.subarray(0, read), checksum)
      at += read
    }
    return checksum
  } finally {
    closeSync(fd)
  }
}

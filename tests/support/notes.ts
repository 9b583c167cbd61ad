/** The notes in the log of a data directory. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { decodeSegment, FrameBuffer } from '../../control/log/journal-format.ts'
import { isNoteRow, type NoteKind, type NoteRow } from '../../control/log/notes.ts'
import { recover } from '../../control/log/recovery.ts'
import { isStateFile, liveCopy } from './durable-store.ts'

const framesIn = (path: string) => {
  const segment = decodeSegment(new Uint8Array(readFileSync(path)))
  if ('damagedAt' in segment) throw new Error(`${path} is damaged`)
  return segment.frames.map(({ kind, payload }) => ({ kind, payload, text: new TextDecoder().decode(payload) }))
}

const logOf = (dataDir: string): string[] =>
  readdirSync(dataDir)
    .filter((name) => /^(pack|journal)-[-\d]+\.log$/.test(name))
    .map((name) => join(dataDir, name))

const hasNotes = (kind: string): boolean => kind === 't' || kind === 'n'

/** The rows of all notes, superseded ones included. Empty while a file is being removed. */
export function notesIn(dataDir: string): NoteRow[] {
  try {
    const frames = logOf(dataDir).flatMap(framesIn)
    return frames.flatMap(({ kind, text }) => (hasNotes(kind) ? (JSON.parse(text) as NoteRow[]).filter(isNoteRow) : []))
  } catch {
    return []
  }
}

/** How many notes a start would find now. */
export async function countNotes(dataDir: string, kind: NoteKind): Promise<number> {
  using copy = liveCopy([dataDir], isStateFile)
  return (await recover(copy.path)).notes.of(kind).size
}

/** Removes all notes from the log of a service that does not run, as if it had been killed before it wrote them. */
export function forgetNotes(dataDir: string): void {
  for (const path of logOf(dataDir)) {
    const frames = new FrameBuffer()
    for (const { kind, payload, text } of framesIn(path)) {
      const rows = hasNotes(kind) ? (JSON.parse(text) as NoteRow[]).filter((row) => !isNoteRow(row)) : undefined
      frames.add(kind, [rows === undefined ? payload : JSON.stringify(rows)], 0)
    }
    writeFileSync(path, frames.bytes)
  }
}

/**
 * Standard error, where subcommands that follow something show it.
 *
 * `process.stderr` of Bun does not tell when a text has left the process, and an exit loses the rest of it. So texts are
 * written here one after the other, and who writes much waits for `drained`.
 *
 * A program that starts us may never read standard error. Once a pipe took nothing for `STALL_MS`, texts are dropped, until it
 * takes some again: the command must come to its end, and print its answer. A terminal is waited for, as people stop it.
 */
import { writeError } from '../../shared/process/standard-output.ts'
import { colours, noColours, type Paint } from '../../shared/text/live-view/palette.ts'
import { type Screen, sizeOf } from '../../shared/text/live-view/screen.ts'
import type { Look } from '../table/look.ts'
import { PatientTexts } from './patient-texts.ts'

/** Milliseconds without a byte after which texts for a pipe are dropped. */
export const STALL_MS = 10_000

export interface StandardError extends Screen {
  write(text: string | Uint8Array): void
  /** Frames can be drawn over each other. */
  readonly isTerminal: boolean
  readonly paint: Paint
  readonly look: () => Look
  /** Whether texts are waiting for the reader. */
  readonly isBusy: () => boolean
  /** Resolves once all that was written has left this process, or was dropped, or its reader is gone. */
  readonly drained: () => Promise<void>
}

export function standardError(env: Readonly<Record<string, string | undefined>>): StandardError {
  const stream = process.stderr
  const isTerminal = stream.isTTY === true && env.TERM !== 'dumb'
  const paint = isTerminal && !env.NO_COLOR ? colours : noColours
  // GitHub obeys this form of a command also in the middle of a line.
  const harmless = env.GITHUB_ACTIONS ? (text: string) => text.replaceAll('##[', '##\\[') : (text: string) => text
  const texts = new PatientTexts(writeError, isTerminal ? undefined : STALL_MS)
  return {
    isTerminal,
    paint,
    write(text) {
      texts.write(typeof text === 'string' ? harmless(text) : text)
    },
    // A terminal may change its size.
    get columns() {
      return stream.columns
    },
    get rows() {
      return stream.rows
    },
    look: () => ({ paint, columns: isTerminal ? sizeOf(stream).columns : Number.POSITIVE_INFINITY, nowMs: Date.now() }),
    isBusy: () => texts.isBusy,
    drained: () => texts.drained(),
  }
}

/**
 * Standard error, where subcommands that follow something show it.
 *
 * `process.stderr` of Bun does not tell when a text has left the process, and an exit loses the rest of it. So texts are
 * written here one after the other, and who writes much waits for `drained`.
 */
import { writeError } from '../../shared/process/standard-output.ts'
import { colours, noColours, type Paint } from '../../shared/text/live-view/palette.ts'
import { type Screen, sizeOf } from '../../shared/text/live-view/screen.ts'
import type { Look } from '../table/look.ts'

export interface StandardError extends Screen {
  write(text: string | Uint8Array): void
  /** Frames can be drawn over each other. */
  readonly isTerminal: boolean
  readonly paint: Paint
  readonly look: () => Look
  /** Whether texts are waiting for the reader. */
  readonly isBusy: () => boolean
  /** Resolves once all that was written has left this process, or its reader is gone. */
  readonly drained: () => Promise<void>
}

export function standardError(env: Readonly<Record<string, string | undefined>>): StandardError {
  const stream = process.stderr
  const isTerminal = stream.isTTY === true && env.TERM !== 'dumb'
  const paint = isTerminal && !env.NO_COLOR ? colours : noColours
  // GitHub obeys this form of a command also in the middle of a line.
  const harmless = env.GITHUB_ACTIONS ? (text: string) => text.replaceAll('##[', '##\\[') : (text: string) => text
  const waiting: (string | Uint8Array)[] = []
  let writing: Promise<void> | undefined
  const writeWaiting = async () => {
    for (let text = waiting.shift(); text !== undefined; text = waiting.shift()) {
      await writeError(text).catch(() => {}) // the reader of standard error is gone; the command goes on
    }
    writing = undefined
  }
  return {
    isTerminal,
    paint,
    write(text) {
      waiting.push(typeof text === 'string' ? harmless(text) : text)
      writing ??= writeWaiting()
    },
    // A terminal may change its size.
    get columns() {
      return stream.columns
    },
    get rows() {
      return stream.rows
    },
    look: () => ({ paint, columns: isTerminal ? sizeOf(stream).columns : Number.POSITIVE_INFINITY, nowMs: Date.now() }),
    isBusy: () => writing !== undefined,
    drained: async () => writing,
  }
}

/** Shows output of tasks on standard error: unchanged in a pipe, with control characters escaped on a terminal. */
import { visibleLine, visibleLines } from '../../shared/text/visible-text.ts'

export interface LogScreen {
  show(chunk: Uint8Array): void
  /** Shows a sentence of this program, on a line of its own. */
  note(text: string): void
}

const NEWLINE = 10

export function logScreen(): LogScreen {
  const screen = process.stderr
  screen.on('error', () => {}) // the reader of standard error is gone; the command goes on
  const decoder = new TextDecoder()
  const shown = screen.isTTY
    ? (chunk: Uint8Array) => visibleLines(decoder.decode(chunk, { stream: true }))
    : (chunk: Uint8Array) => chunk
  let isLineBegun = false
  return {
    show(chunk) {
      screen.write(shown(chunk))
      isLineBegun = chunk.at(-1) !== NEWLINE
    },
    note(text) {
      screen.write(`${isLineBegun ? '\n' : ''}taskmill: ${visibleLine(text)}\n`)
      isLineBegun = false
    },
  }
}

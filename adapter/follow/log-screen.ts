/** Shows output of tasks on standard error: unchanged in a pipe, with control characters escaped on a terminal. */
import { visibleLine, visibleLines } from '../../shared/text/visible-text.ts'
import { standardError } from './standard-error.ts'

export interface LogScreen {
  /** Resolves once more may come. */
  show(chunk: Uint8Array): Promise<void>
  /** Shows a sentence of this program, on a line of its own. */
  note(text: string): void
}

const NEWLINE = 10

export function logScreen(env: Readonly<Record<string, string | undefined>>): LogScreen {
  const screen = standardError(env)
  const decoder = new TextDecoder()
  const shown = process.stderr.isTTY
    ? (chunk: Uint8Array) => visibleLines(decoder.decode(chunk, { stream: true }))
    : (chunk: Uint8Array) => chunk
  let isLineBegun = false
  return {
    show(chunk) {
      screen.write(shown(chunk))
      isLineBegun = chunk.at(-1) !== NEWLINE
      return screen.drained()
    },
    note(text) {
      screen.write(`${isLineBegun ? '\n' : ''}taskmill: ${visibleLine(text)}\n`)
      isLineBegun = false
    },
  }
}

/** Shows output of tasks on standard error: as it is in a pipe, as harmless text on a terminal. */
import { visibleLines } from '../../shared/visible-text.ts'

export interface LogScreen {
  show(chunk: Uint8Array): void
}

export function logScreen(): LogScreen {
  const screen = process.stderr
  screen.on('error', () => {}) // the reader of standard error is gone; the command goes on
  if (screen.isTTY !== true) return { show: (chunk) => void screen.write(chunk) }
  const decoder = new TextDecoder()
  return { show: (chunk) => void screen.write(visibleLines(decoder.decode(chunk, { stream: true }))) }
}

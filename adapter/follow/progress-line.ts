/** How far a copy is, on one line of a terminal; nothing elsewhere. */
import { visibleLine } from '../../shared/text/visible-text.ts'

/** Milliseconds between two changes of the line. */
const PERIOD_MS = 200

export interface ProgressLine {
  /** `total` is undefined if nobody knows it. */
  show(bytes: number, total: number | undefined): void
  /** Shows a sentence on a line of its own. */
  note(text: string): void
  end(): void
}

type Screen = Pick<NodeJS.WriteStream, 'isTTY' | 'write'>

export function progressLine(screen: Screen, name: string): ProgressLine {
  let shownMs = Number.NEGATIVE_INFINITY
  let last = ''
  const write = (text: string) => void screen.write(text)
  const end = () => {
    if (last !== '') write(`\r${last}\n`)
    last = ''
  }
  return {
    show(bytes, total) {
      if (!screen.isTTY) return
      last = `${visibleLine(name)}  ${megabytes(bytes)}${total === undefined ? '' : ` of ${megabytes(total)}`} MB`
      if (performance.now() - shownMs < PERIOD_MS) return
      shownMs = performance.now()
      write(`\r${last}`)
    },
    note(text) {
      end()
      write(`taskmill: ${visibleLine(text)}\n`)
    },
    end,
  }
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(1)

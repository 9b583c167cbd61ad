/** The lines of a log in the page: the newest of them, styled, with their numbers. */
import { AnsiReader, type StyledLine } from './ansi.ts'

export type StreamName = 'stdout' | 'stderr'

export interface LogLine {
  /** Counted from the first line that the page received, over both streams. */
  readonly key: number
  /** The number of the line in its stream. Undefined: unknown. */
  readonly number: number | undefined
  readonly stream: StreamName
  readonly pieces: StyledLine
}

/** Lines in the page; older ones leave. */
export const MAX_LINES = 5_000

/** Characters of one line; the rest of it is left out. */
export const MAX_LINE_CHARACTERS = 20_000

/** Keys of the last line of each stream while it has no end. */
const UNFINISHED_KEYS = { stdout: -1, stderr: -2 } as const

export class LogLines {
  #lines: LogLine[] = []
  #nextKey = 1
  readonly #next: Record<StreamName, number | undefined> = { stdout: 1, stderr: 1 }
  #dropped = 0
  readonly #readers = { stdout: new AnsiReader(), stderr: new AnsiReader() }
  readonly #rest = { stdout: '', stderr: '' }

  /** The lines so far; the last of a stream also without its end. */
  get lines(): readonly LogLine[] {
    const unfinished = (['stdout', 'stderr'] as const).flatMap((stream): LogLine[] =>
      this.#rest[stream] === ''
        ? []
        : [
            {
              key: UNFINISHED_KEYS[stream],
              number: this.#next[stream],
              stream,
              pieces: new AnsiReader().line(cut(this.#rest[stream])),
            },
          ],
    )
    return unfinished.length === 0 ? this.#lines : [...this.#lines, ...unfinished]
  }

  /** Lines that the page had and has no longer. */
  get dropped(): number {
    return this.#dropped
  }

  /** Forgets a stream that is about to come, perhaps again. `linesBefore`: lines of it that do not come, if known. */
  restart(stream: StreamName, linesBefore: number | undefined): void {
    this.#lines = this.#lines.filter((line) => line.stream !== stream)
    this.#rest[stream] = ''
    this.#readers[stream] = new AnsiReader()
    this.#dropped = 0
    this.#next[stream] = linesBefore === undefined ? undefined : linesBefore + 1
  }

  push(stream: StreamName, chunk: string): void {
    const parts = (this.#rest[stream] + chunk).split('\n')
    // A line without an end must not grow for ever; what it has beyond the limit is not shown anyway.
    this.#rest[stream] = parts.pop()!.slice(0, MAX_LINE_CHARACTERS + 1)
    const added = parts.slice(-MAX_LINES)
    this.#advance(stream, parts.length - added.length)
    const lines = added.map((text) => ({
      ...{ key: this.#nextKey++, number: this.#advance(stream, 1) },
      stream,
      pieces: this.#readers[stream].line(cut(text)),
    }))
    const all = [...this.#lines, ...lines]
    this.#lines = all.slice(-MAX_LINES)
    this.#dropped += parts.length - added.length + all.length - this.#lines.length
  }

  /** The number of the next line. `by` lines come. */
  #advance(stream: StreamName, by: number): number | undefined {
    const number = this.#next[stream]
    if (number !== undefined) this.#next[stream] = number + by
    return number
  }
}

const cut = (line: string): string =>
  line.length > MAX_LINE_CHARACTERS ? `${line.slice(0, MAX_LINE_CHARACTERS)} …` : line

/** The text of a line, as one finds and copies it. */
export const textOf = ({ pieces }: Pick<LogLine, 'pieces'>): string => pieces.map(({ text }) => text).join('')

/** Output of a program in its colours, always as text. */
import { AnsiReader, type StyledLine } from './ansi.ts'

export const StyledPieces = ({ pieces }: { pieces: StyledLine }) =>
  pieces.map(({ text, style }, index) => (
    <span key={index} class={style}>
      {text}
    </span>
  ))

/** The last `maxLines` lines of `text`. */
export function StyledText({ text, maxLines }: { text: string; maxLines: number }) {
  const reader = new AnsiReader()
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => reader.line(line))
  return (
    <pre class="tail-text">
      {lines.slice(-maxLines).map((pieces, index) => (
        <div key={index}>
          <StyledPieces pieces={pieces} />
        </div>
      ))}
    </pre>
  )
}

/** How text looks: a few styles, or none at all. Pure. */

const CODES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 } as const

export type Style = keyof typeof CODES | 'plain'

export type Paint = (style: Style, text: string) => string

export const colours: Paint = (style, text) => (style === 'plain' ? text : `\x1b[${CODES[style]}m${text}\x1b[0m`)

export const noColours: Paint = (_style, text) => text

/** `text` in exactly `columns` columns: filled up with spaces, or cut with an ellipsis. */
export function fit(text: string, columns: number): string {
  const shown = cut(text, columns)
  return shown + ' '.repeat(Math.max(0, columns - Bun.stringWidth(shown)))
}

/** `text` in at most `columns` columns. Colours in it stay whole and are closed. */
export function cut(text: string, columns: number): string {
  if (columns <= 0) return ''
  const shown = Bun.sliceAnsi(text, 0, columns, { ellipsis: '…' })
  // With a wide character at its end the slice can be a column too long.
  return Bun.stringWidth(shown) <= columns ? shown : cut(text, columns - 1)
}

/** `text` in lines of at most `columns` columns, broken between words; one that is longer has a line of its own. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || Bun.stringWidth(`${last} ${word}`) > columns) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}

/**
 * Turns the output of a program into lines of styled text. Pure.
 *
 * Applies escape sequences for colours and weights, and drops all others. A carriage return clears its line, for
 * progress bars. Other control characters become visible signs. The result is data, which the page shows as text.
 */

export interface Piece {
  readonly text: string
  /** Names of classes: `bold`, `dim`, `italic`, `underline`, `fg-1`, `bg-4`. */
  readonly style: string
}

export type StyledLine = readonly Piece[]

/** An escape sequence: CSI, OSC, DCS and its like, or two characters. Also one that the end of the text cuts off. */
const ESCAPE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are made of them
  /(?:\x1b\[|\x9b)([0-?]*)[ -/]*([@-~]|$)|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)|\x1b[ -/]*[0-~]?/g

// biome-ignore lint/suspicious/noControlCharactersInRegex: it replaces them
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u202a-\u202e\u2066-\u2069]/g

interface Style {
  bold: boolean
  dim: boolean
  italic: boolean
  underline: boolean
  foreground: number | undefined
  background: number | undefined
}

const plain = (): Style => ({
  ...{ bold: false, dim: false, italic: false, underline: false },
  ...{ foreground: undefined, background: undefined },
})

/** Keeps the style from line to line, as a terminal does. */
export class AnsiReader {
  readonly #style = plain()

  line(text: string): StyledLine {
    const shown = text.replace(/\r+$/, '')
    const pieces: Piece[] = []
    let at = 0
    const put = (end: number) => {
      let part = shown.slice(at, end)
      const restart = part.lastIndexOf('\r')
      if (restart >= 0) {
        pieces.length = 0
        part = part.slice(restart + 1)
      }
      if (part !== '') pieces.push({ text: part.replace(CONTROL, visible), style: classesOf(this.#style) })
    }
    for (const match of shown.matchAll(ESCAPE)) {
      put(match.index)
      at = match.index + match[0].length
      if (match[2] === 'm') applyCodes(this.#style, match[1] ?? '')
    }
    put(shown.length)
    return pieces
  }
}

function applyCodes(style: Style, codes: string): void {
  const numbers = codes.split(/[;:]/).map((code) => (code === '' ? 0 : Number(code)))
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at]!
    if (code === 0) Object.assign(style, plain())
    else if (code === 1) style.bold = true
    else if (code === 2) style.dim = true
    else if (code === 3) style.italic = true
    else if (code === 4) style.underline = true
    else if (code === 22) Object.assign(style, { bold: false, dim: false })
    else if (code === 23) style.italic = false
    else if (code === 24) style.underline = false
    else if (code >= 30 && code <= 37) style.foreground = code - 30
    else if (code >= 90 && code <= 97) style.foreground = code - 90 + 8
    else if (code === 39) style.foreground = undefined
    else if (code >= 40 && code <= 47) style.background = code - 40
    else if (code >= 100 && code <= 107) style.background = code - 100 + 8
    else if (code === 49) style.background = undefined
    else if (code === 38 || code === 48) {
      const { color, used } = extendedColor(numbers.slice(at + 1))
      at += used
      if (code === 38) style.foreground = color
      else style.background = color
    }
  }
}

/**
 * The nearest of the sixteen colours to the one that `5;n` or `2;r;g;b` names. Only the sixteen have enough contrast.
 */
function extendedColor([kind, ...rest]: readonly number[]): { color: number | undefined; used: number } {
  if (kind === 5) return { color: nearestOf256(rest[0] ?? 0), used: 2 }
  if (kind === 2) return { color: nearest(rest[0] ?? 0, rest[1] ?? 0, rest[2] ?? 0), used: 4 }
  return { color: undefined, used: 1 }
}

function nearestOf256(code: number): number {
  if (code < 16) return code
  if (code >= 232) return code < 244 ? 8 : 7
  const index = code - 16
  const level = (value: number) => (value === 0 ? 0 : 55 + value * 40)
  return nearest(level(Math.floor(index / 36)), level(Math.floor(index / 6) % 6), level(index % 6))
}

function nearest(red: number, green: number, blue: number): number {
  const most = Math.max(red, green, blue)
  const bit = (value: number) => (value > most * 0.6 && value > 40 ? 1 : 0)
  const color = bit(red) + bit(green) * 2 + bit(blue) * 4
  return most > 200 && color !== 7 ? color + 8 : color
}

function classesOf(style: Style): string {
  const names: string[] = []
  for (const name of ['bold', 'dim', 'italic', 'underline'] as const) if (style[name]) names.push(name)
  if (style.foreground !== undefined) names.push(`fg-${style.foreground}`)
  if (style.background !== undefined) names.push(`bg-${style.background}`)
  return names.join(' ')
}

/** A control character as the sign that stands for it; one that turns the direction of text as its code. */
function visible(character: string): string {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? '\u2421' : `\\u${code.toString(16).padStart(4, '0')}`
}

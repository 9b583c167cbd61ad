/**
 * JSON with comments and trailing commas, as editors keep their settings. Pure.
 *
 * `plainJson` replaces comments and trailing commas by spaces, so every offset stays the same. `membersAt` then scans one
 * object, without recursion: values are skipped, not read.
 */
import { HostFileFault } from './fault.ts'

/** Levels of nesting. A configuration has a dozen. */
export const MAX_DEPTH = 500

export interface PlainJson {
  /** JSON of the same length. */
  readonly text: string
  /** Comments as `[start, end)`, in order. */
  readonly comments: readonly (readonly [number, number])[]
  /** Offsets of trailing commas. */
  readonly commas: readonly number[]
}

/** Throws `HostFileFault` for text that is nested too deep. Other faults are found when the result is parsed. */
export function plainJson(source: string): PlainJson {
  const comments: [number, number][] = []
  const commas: number[] = []
  /** Offset of the last comma, while only spaces and comments follow; else -1. */
  let comma = -1
  let depth = 0
  for (let at = 0; at < source.length; ) {
    const char = source[at]!
    const end = tokenEnd(source, at)
    if (isComment(source, at)) comments.push([at, end])
    else if (!isSpace(char)) {
      if (comma >= 0 && isClosing(char)) commas.push(comma)
      comma = char === ',' ? at : -1
      if (isOpening(char)) depth++
      if (isClosing(char)) depth--
      if (depth > MAX_DEPTH) throw new HostFileFault(`it is nested more than ${MAX_DEPTH} deep`)
    }
    at = end
  }
  return { text: blanked(source, [...comments, ...commas.map((at) => [at, at + 1] as const)]), comments, commas }
}

/** `source` with spaces instead of the given parts; line ends stay. */
function blanked(source: string, spans: readonly (readonly [number, number])[]): string {
  let text = ''
  let at = 0
  for (const [start, end] of spans.toSorted((a, b) => a[0] - b[0])) {
    text += source.slice(at, start) + source.slice(start, end).replaceAll(/[^\r\n]/g, ' ')
    at = end
  }
  return text + source.slice(at)
}

export interface Member {
  readonly key: string
  /** Offsets of the key and of the value. */
  readonly start: number
  readonly valueStart: number
  readonly valueEnd: number
}

export interface ObjectPlace {
  readonly open: number
  readonly close: number
  readonly members: readonly Member[]
}

/** The object that begins at `open` in `json`, which parses. */
export function objectAt(json: string, open: number): ObjectPlace {
  const members: Member[] = []
  let at = skipSpace(json, open + 1)
  while (json[at] !== '}') {
    const start = at
    const keyEnd = tokenEnd(json, at)
    const valueStart = skipSpace(json, skipSpace(json, keyEnd) + 1)
    const valueEnd = endOfValue(json, valueStart)
    members.push({ key: JSON.parse(json.slice(start, keyEnd)), start, valueStart, valueEnd })
    at = skipSpace(json, valueEnd)
    if (json[at] === ',') at = skipSpace(json, at + 1)
  }
  return { open, close: at, members }
}

/** The offset behind the value at `at`. */
function endOfValue(json: string, at: number): number {
  let depth = 0
  for (let i = at; i < json.length; ) {
    const char = json[i]!
    const end = tokenEnd(json, i)
    if (isOpening(char)) depth++
    else if (isClosing(char)) depth--
    if (depth === 0) return isOpening(char) || isClosing(char) || char === '"' ? end : endOfWord(json, i)
    i = end
  }
  return json.length
}

/** The offset behind a number or a name. */
function endOfWord(json: string, at: number): number {
  let end = at
  while (end < json.length && /[\w.+-]/.test(json[end]!)) end++
  return end
}

export function skipSpace(text: string, from: number): number {
  let at = from
  while (at < text.length && isSpace(text[at]!)) at++
  return at
}

/** The offset behind the text, the comment or the character at `at`. */
function tokenEnd(text: string, at: number): number {
  if (isComment(text, at)) {
    const isLine = text[at + 1] === '/'
    const end = isLine ? lineEnd(text, at) : text.indexOf('*/', at + 2)
    return end < 0 ? text.length : isLine ? end : end + 2
  }
  if (text[at] !== '"') return at + 1
  for (let i = at + 1; i < text.length; i++) {
    if (text[i] === '\\') i++
    else if (text[i] === '"') return i + 1
  }
  return text.length
}

function lineEnd(text: string, at: number): number {
  const end = text.slice(at).search(/[\r\n]/)
  return end < 0 ? text.length : at + end
}

const isComment = (text: string, at: number): boolean =>
  text[at] === '/' && (text[at + 1] === '/' || text[at + 1] === '*')
const isSpace = (char: string): boolean => char === ' ' || char === '\t' || char === '\n' || char === '\r'
const isOpening = (char: string): boolean => char === '{' || char === '['
const isClosing = (char: string): boolean => char === '}' || char === ']'

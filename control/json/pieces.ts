/** The JSON text of a value in pieces, so that a large value neither blocks the event loop nor needs a copy. Pure. */
import type { Steps } from '../../shared/process/steps.ts'

/** Characters of a piece, about. A text in the value is never divided. */
const PIECE_CHARACTERS = 16 * 1024

/** A container whose members are being written. `keys` is undefined for an array. */
interface Open {
  readonly container: object
  readonly keys: readonly string[] | undefined
  readonly length: number
  next: number
}

const opened = (container: object): Open => {
  const keys = Array.isArray(container) ? undefined : Object.keys(container)
  return { container, keys, length: keys?.length ?? (container as unknown[]).length, next: 0 }
}

/** Pieces that make up what `JSON.stringify` writes for `value`, which is a JSON value. No recursion. */
export function* jsonPieces(value: unknown): Generator<string, void, void> {
  let piece = ''
  const stack: Open[] = []
  const begin = (member: unknown) => {
    if (typeof member !== 'object' || member === null) {
      piece += JSON.stringify(member)
      return
    }
    const open = opened(member)
    piece += open.keys === undefined ? '[' : '{'
    stack.push(open)
  }
  begin(value)
  for (let open = stack.at(-1); open !== undefined; open = stack.at(-1)) {
    if (open.next === open.length) {
      piece += open.keys === undefined ? ']' : '}'
      stack.pop()
      continue
    }
    const at = open.next++
    const name: string | number = open.keys?.[at] ?? at
    if (at > 0) piece += ','
    if (open.keys !== undefined) piece += `${JSON.stringify(name)}:`
    begin((open.container as Record<string | number, unknown>)[name])
    if (piece.length >= PIECE_CHARACTERS) {
      yield piece
      piece = ''
    }
  }
  if (piece !== '') yield piece
}

/** Bytes of the JSON text of `value`; undefined if there are more than `maxBytes`, as soon as that is known. */
export function* jsonBytes(value: unknown, maxBytes: number): Steps<number | undefined> {
  // A lower bound: a character has at least one byte, and quotes and escapes add more.
  if (typeof value === 'string' && value.length > maxBytes) return undefined
  let bytes = 0
  for (const piece of jsonPieces(value)) {
    bytes += Buffer.byteLength(piece)
    if (bytes > maxBytes) return undefined
    yield
  }
  return bytes
}

/** The JSON text of `value`. */
export function* jsonText(value: unknown): Steps<string> {
  let text = ''
  for (const piece of jsonPieces(value)) {
    text += piece
    yield
  }
  return text
}

export interface JsonDigest {
  /** Hash of the JSON text in UTF-8, in hexadecimal digits. */
  readonly sha256: string
  readonly bytes: number
}

export function* jsonDigest(value: unknown): Steps<JsonDigest> {
  const hasher = new Bun.CryptoHasher('sha256')
  let bytes = 0
  for (const piece of jsonPieces(value)) {
    hasher.update(piece)
    bytes += Buffer.byteLength(piece)
    yield
  }
  return { sha256: hasher.digest('hex'), bytes }
}

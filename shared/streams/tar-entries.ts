/**
 * The entries of a tar of a directory that control sends, read as it comes. It came from elsewhere, so nothing in it is
 * trusted: an entry is a file or a directory, and each name of its path is one name. Pure.
 */

export interface TarEntry {
  readonly type: 'file' | 'directory'
  /** The names of its path, of which the first is that of the directory itself, as bytes. */
  readonly names: readonly Uint8Array[]
  /** Permissions. */
  readonly mode: number
  readonly bytes: number
  /** The content, which has to be read before the next entry. */
  readonly content: AsyncGenerator<Uint8Array>
}

const BLOCK_BYTES = 512

/** Bytes of a path: 64 directories with names of 255 bytes, and more. */
const MAX_PATH_BYTES = 64 * 1024

const SLASH = 0x2f
const NUL = 0

/** Throws an `Error` for bytes that are no such tar. */
export async function* tarEntries(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarEntry> {
  const reader = new ByteReader(chunks)
  let longPath: Uint8Array | undefined
  for (;;) {
    const header = await reader.exactly(BLOCK_BYTES)
    if (header.every((byte) => byte === NUL)) return
    if (checksumOf(header) !== octal(header, 148, 8)) throw malformed('a damaged header')
    const type = String.fromCharCode(header[156]!)
    const bytes = sizeIn(header)
    const padding = -bytes & (BLOCK_BYTES - 1)
    if (type === 'L') {
      if (bytes > MAX_PATH_BYTES) throw malformed('a path that is too long')
      longPath = untilNul(await reader.exactly(bytes))
      await reader.exactly(padding)
      continue
    }
    if (type !== '0' && type !== '5') throw malformed('an entry that is neither a file nor a directory')
    const names = namesIn(longPath ?? untilNul(header.subarray(0, 100)))
    longPath = undefined
    const mode = octal(header, 100, 8) & 0o777
    const content = reader.upTo(bytes)
    yield { type: type === '0' ? 'file' : 'directory', names, mode, bytes, content }
    for await (const _ of content); // what was not read
    await reader.exactly(padding)
  }
}

const malformed = (what: string) => new Error(`the answer is no valid tar: it has ${what}`)

function namesIn(path: Uint8Array): Uint8Array[] {
  const names: Uint8Array[] = []
  for (let from = 0; from < path.length; ) {
    const slash = path.indexOf(SLASH, from)
    const to = slash < 0 ? path.length : slash
    const name = path.slice(from, to)
    const text = String.fromCharCode(...name.subarray(0, 3))
    if (text === '' || text === '.' || text === '..') throw malformed('a path that leads elsewhere')
    names.push(name)
    from = to + 1
  }
  if (names.length === 0) throw malformed('an entry without a name')
  return names
}

function untilNul(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(NUL)
  return end < 0 ? bytes : bytes.subarray(0, end)
}

const octal = (header: Uint8Array, at: number, length: number): number =>
  Number.parseInt(new TextDecoder('latin1').decode(untilNul(header.subarray(at, at + length))), 8)

function sizeIn(header: Uint8Array): number {
  const isBinary = header[124] === 0x80
  const size = isBinary
    ? Number(new DataView(header.buffer, header.byteOffset).getBigUint64(128))
    : octal(header, 124, 12)
  if (Number.isSafeInteger(size)) return size
  throw malformed('a size that is none')
}

/** The sum of the bytes, with spaces in place of the checksum. */
const checksumOf = (header: Uint8Array): number =>
  header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0)

class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #left: Uint8Array = new Uint8Array()

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  async exactly(bytes: number): Promise<Uint8Array> {
    const all = new Uint8Array(bytes)
    let at = 0
    for await (const part of this.upTo(bytes)) {
      all.set(part, at)
      at += part.length
    }
    return all
  }

  /** The next bytes in parts. */
  async *upTo(bytes: number): AsyncGenerator<Uint8Array> {
    for (let missing = bytes; missing > 0; ) {
      if (this.#left.length === 0) {
        const { done, value } = await this.#chunks.next()
        if (done === true) throw malformed('no end')
        this.#left = value
      }
      const part = this.#left.subarray(0, missing)
      this.#left = this.#left.subarray(part.length)
      missing -= part.length
      yield part
    }
  }
}

/**
 * Masks texts in a stream of bytes: each longest run of bytes that occurrences of the texts cover becomes `***`. What comes
 * out does not depend on how the stream was cut.
 *
 * An Aho-Corasick automaton reads each byte once. Its state is the longest text that may have begun, so only as many bytes
 * are held back: at most those of the longest text. masker.c of the native launcher does the same.
 */

export const MASK = '***'

const MASK_BYTES = Buffer.from(MASK)

/** The automaton of some texts, which any number of maskers share. */
export class MaskTexts {
  /** By node, of which 0 is the start: where to go on when no text goes on here. */
  readonly #fail: Uint32Array
  /** Bytes of the longest text that ends here, also as the end of a longer beginning; 0 if none does. */
  readonly #longest: Uint32Array
  readonly #depth: Uint32Array
  readonly #byte: Uint8Array
  readonly #child: Uint32Array
  readonly #sibling: Uint32Array
  /** The nodes after the first byte, where most bytes of a stream are looked up; 0 where no text begins with it. */
  readonly first = new Uint32Array(256)
  #count = 1

  /** Empty texts are ignored. */
  constructor(texts: readonly Uint8Array[]) {
    const size = texts.reduce((bytes, text) => bytes + text.length, 1)
    this.#fail = new Uint32Array(size)
    this.#longest = new Uint32Array(size)
    this.#depth = new Uint32Array(size)
    this.#byte = new Uint8Array(size)
    this.#child = new Uint32Array(size)
    this.#sibling = new Uint32Array(size)
    for (const text of texts) this.#add(text)
    this.#link()
  }

  depth(node: number): number {
    return this.#depth[node]!
  }

  longest(node: number): number {
    return this.#longest[node]!
  }

  next(node: number, byte: number): number {
    for (let at = node; ; at = this.#fail[at]!) {
      const found = this.#find(at, byte)
      if (found !== 0 || at === 0) return found
    }
  }

  #find(node: number, byte: number): number {
    if (node === 0) return this.first[byte]!
    let at = this.#child[node]!
    while (at !== 0 && this.#byte[at] !== byte) at = this.#sibling[at]!
    return at
  }

  #add(text: Uint8Array): void {
    let node = 0
    for (const byte of text) node = this.#find(node, byte) || this.#insert(node, byte)
    this.#longest[node] = text.length
  }

  #insert(parent: number, byte: number): number {
    const node = this.#count++
    this.#byte[node] = byte
    this.#depth[node] = this.#depth[parent]! + 1
    this.#sibling[node] = this.#child[parent]!
    this.#child[parent] = node
    if (parent === 0) this.first[byte] = node
    return node
  }

  /** Breadth first, so that what a node falls back to is linked before it. */
  #link(): void {
    const queue = new Uint32Array(this.#count)
    let end = 1
    for (let at = 0; at < end; at++) {
      const node = queue[at]!
      for (let child = this.#child[node]!; child !== 0; child = this.#sibling[child]!) {
        const fail = node === 0 ? 0 : this.next(this.#fail[node]!, this.#byte[child]!)
        this.#fail[child] = fail
        this.#longest[child] ||= this.#longest[fail]!
        queue[end++] = child
      }
    }
  }
}

interface Span {
  from: number
  readonly to: number
}

export class Masker {
  readonly #texts: MaskTexts
  readonly #keepsLength: boolean
  #node = 0
  /** What is not passed on yet. */
  #held: Uint8Array = new Uint8Array(0)
  /** The parts of `held` that texts cover, in order; no two of them touch. */
  #spans: Span[] = []
  /** Whether the last byte that was passed on was covered. */
  #isMasking = false

  /** `keepsLength`: each byte that is covered becomes `*`, so that lengths which were told before stay true. */
  constructor(texts: MaskTexts, keepsLength = false) {
    this.#texts = texts
    this.#keepsLength = keepsLength
  }

  /** What can be passed on after `chunk`. */
  push(chunk: Uint8Array): Uint8Array {
    const begin = this.#held.length
    this.#held = begin === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const held = this.#held
    const { first } = this.#texts
    let node = this.#node
    for (let i = begin; i < held.length; i++) {
      const byte = held[i]!
      if (node === 0 && first[byte] === 0) continue // most bytes: three times as fast as the call
      node = this.#texts.next(node, byte)
      const length = this.#texts.longest(node)
      if (length > 0) this.#cover(i + 1 - length, i + 1)
    }
    this.#node = node
    return this.#release(this.#held.length - this.#texts.depth(node))
  }

  /** The rest, at the end of the stream. */
  end(): Uint8Array {
    this.#node = 0
    return this.#release(this.#held.length)
  }

  #cover(from: number, to: number): void {
    let begin = from
    for (let last = this.#spans.at(-1); last !== undefined && last.to >= begin; last = this.#spans.at(-1)) {
      begin = Math.min(begin, last.from)
      this.#spans.pop()
    }
    this.#spans.push({ from: begin, to })
  }

  #release(count: number): Uint8Array {
    const parts: Uint8Array[] = []
    const rest: Span[] = []
    let at = 0
    const passOn = (to: number) => {
      if (to <= at) return
      parts.push(this.#held.subarray(at, to))
      this.#isMasking = false
      at = to
    }
    for (const span of this.#spans) {
      passOn(Math.min(span.from, count))
      if (span.from < count) {
        const to = Math.min(span.to, count)
        if (this.#keepsLength) parts.push(Buffer.alloc(to - at, MASK[0]))
        else if (!this.#isMasking) parts.push(MASK_BYTES)
        this.#isMasking = true
        at = to
      }
      if (span.to > count) rest.push({ from: Math.max(span.from, count) - count, to: span.to - count })
    }
    passOn(count)
    // A copy: neither what was passed on nor the buffer of the caller is kept.
    this.#held = this.#held.slice(count)
    this.#spans = rest
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }
}

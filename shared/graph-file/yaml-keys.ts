/**
 * Finds keys that a YAML mapping has twice, and tags. Bun's parser keeps the last value of such a key and ignores most
 * tags, so a slip of the indentation would lose a field in silence. Pure.
 *
 * The text is known to be YAML, so a scan of lines is enough: it follows block mappings by their column, skips scalars,
 * and reads flow collections by their brackets. It gives up on explicit keys (`? key`), which no graph needs.
 */

export interface KeyFault {
  /** The first line is 1. */
  readonly line: number
  readonly message: string
}

/** Where a value stands; the first line and column are 1. */
export interface Place {
  readonly line: number
  readonly column: number
}

/** The key or item on the way to a value, and where its own value begins. */
interface Step {
  readonly column: number
  readonly isItem: boolean
  key: string | number
  /** Whether all steps up to this one lead to the place that is looked for. */
  leads: boolean
}

/**
 * Where the value at `path` stands in `text`, or its key, or the innermost value around it that is found. Items of a list in
 * brackets are not. Undefined if there is none.
 */
export function placeInYaml(
  text: string,
  path: readonly (string | number)[],
  of: 'value' | 'key' = 'value',
): Place | undefined {
  const scan = new KeyScan(text, path, of)
  try {
    scan.run()
  } catch (thrown) {
    if (!(thrown instanceof Found || thrown instanceof GivenUp)) throw thrown
  }
  return scan.place
}

/** The first fault of `text`; undefined if there is none. */
export function yamlKeyFault(text: string): KeyFault | undefined {
  try {
    new KeyScan(text).run()
    return undefined
  } catch (thrown) {
    if (thrown instanceof Found) return thrown.fault
    if (thrown instanceof GivenUp) return undefined
    throw thrown
  }
}

class Found extends Error {
  constructor(readonly fault: KeyFault) {
    super(fault.message)
  }
}

class GivenUp extends Error {}

/** Keys with the lines on which they stand. */
type Keys = Map<string, number>

interface BlockMapping {
  readonly column: number
  readonly keys: Keys
}

/** A mapping or sequence in brackets. */
interface FlowFrame {
  readonly keys: Keys | undefined
  /** The last scalar that may turn out to be a key. */
  candidate: string | undefined
  /** Where that scalar begins. */
  candidateAt: Place | undefined
  isQuoted: boolean
  /** Number of wanted steps that lead to this collection. Undefined: they lead elsewhere. */
  readonly depth: number | undefined
  /** The current key, or the index of the current item. */
  step: string | number
}

/** A key may stand for a merge any number of times. */
const MERGE = '<<'

/** Tags that change nothing, or that the parser knows. */
const KNOWN_TAGS: ReadonlySet<string> = new Set(['!!str', '!!map', '!!seq'])

class KeyScan {
  readonly #lines: readonly string[]
  #row = 0
  /** The block mappings around the current line, the innermost last. */
  #mappings: BlockMapping[] = []
  /** Lines further to the right than this continue a plain scalar. Undefined: there is none. */
  #plainIndent: number | undefined

  /** The steps to the current node, the innermost last. */
  readonly #steps: Step[] = []
  readonly #wanted: readonly (string | number)[]
  readonly #of: 'value' | 'key'
  #depth = 0
  /** The innermost place so far on the way to the wanted one. */
  place: Place | undefined

  constructor(text: string, wanted: readonly (string | number)[] = [], of: 'value' | 'key' = 'value') {
    this.#wanted = wanted
    this.#of = of
    this.#lines = text.replace(/^\ufeff/, '').split(/\r\n|\n|\r/)
  }

  run(): void {
    for (; this.#row < this.#lines.length; this.#row++) this.#line(this.#lines[this.#row]!)
  }

  #line(line: string): void {
    const column = line.search(/[^ ]/)
    if (column < 0 || line[column] === '#' || /^\s*$/.test(line)) return
    if (/^(---|\.\.\.)(\s|$)/.test(line) || line.startsWith('%')) {
      this.#mappings = []
      this.#plainIndent = undefined
      return
    }
    if (this.#plainIndent !== undefined && column > this.#plainIndent) return
    this.#plainIndent = undefined
    this.#entry(line, column)
  }

  /** Reads the node at `column`: items of sequences, then a key or a value. */
  #entry(line: string, column: number): void {
    let dash: number | undefined
    let at = column
    while (/^-(\s|$)/.test(line.slice(at))) {
      this.#leave(at)
      dash = at
      const begin = at
      at += 1 + line.slice(at + 1).search(/\S|$/)
      this.#step(begin, undefined, at)
    }
    if (/^\?(\s|$)/.test(line.slice(at))) throw new GivenUp()
    const key = this.#keyAt(line, at)
    if (key === undefined) {
      const outer = this.#mappings.findLast((mapping) => mapping.column < at)?.column ?? -1
      this.#value(line, at, dash ?? outer)
      return
    }
    this.#leave(at)
    if (this.#mappings.at(-1)?.column !== at) this.#mappings.push({ column: at, keys: new Map() })
    if (key.text !== undefined) this.#note(this.#mappings.at(-1)!.keys, key.text)
    this.#step(at, key.text ?? '', key.end + line.slice(key.end).search(/\S|$/))
    this.#value(line, key.end, at)
  }

  /** Enters the item or the key at `column`, whose value begins at `valueAt` of the current line. */
  #step(column: number, key: string | undefined, valueAt: number): void {
    const isItem = key === undefined
    const isInside = (step: Step) => step.column < column || (step.column === column && (isItem || !step.isItem))
    while (this.#steps.length > 0 && !isInside(this.#steps.at(-1)!)) this.#steps.pop()
    const last = this.#steps.at(-1)
    if (last?.column === column && last.isItem === isItem) {
      last.key = isItem ? Number(last.key) + 1 : key
    } else this.#steps.push({ column, isItem, key: key ?? 0, leads: false })
    const depth = this.#steps.length
    const step = this.#steps[depth - 1]!
    step.leads = (this.#steps[depth - 2]?.leads ?? true) && this.#wanted[depth - 1] === step.key
    if (step.leads) this.#found(depth, this.#placeAt(column), this.#placeAt(valueAt))
  }

  /** The first `depth` wanted steps lead to this key or item, and this value. */
  #found(depth: number, key: Place, value: Place): void {
    if (depth <= this.#depth) return
    this.#depth = depth
    this.place = this.#of === 'key' && depth === this.#wanted.length ? key : value
  }

  #placeAt(column: number): Place {
    return { line: this.#row + 1, column: column + 1 }
  }

  /** Leaves the mappings that are further to the right. */
  #leave(column: number): void {
    while ((this.#mappings.at(-1)?.column ?? -1) > column) this.#mappings.pop()
  }

  #note(keys: Keys, key: string): void {
    const first = keys.get(key)
    if (first !== undefined && key !== MERGE) {
      throw this.#fault(`the key ${JSON.stringify(key)} is given twice (first on line ${first})`)
    }
    keys.set(key, this.#row + 1)
  }

  #fault(message: string): Found {
    return new Found({ line: this.#row + 1, message })
  }

  /** The key at `at`, if there is one; its text is undefined for an alias. `end` is behind the colon. */
  #keyAt(line: string, at: number): { readonly text: string | undefined; readonly end: number } | undefined {
    const start = this.#withoutProperties(line, at)
    const rest = line.slice(start)
    const quoted = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*:(?=\s|$)/.exec(rest)
    if (quoted !== null) return { text: quoted[1]!.slice(1, -1), end: start + quoted[0].length }
    if (/^["'[{|>#]/.test(rest)) return undefined
    const colon = rest.search(/:(?=\s|$)/)
    if (colon < 0) return undefined
    const text = rest.slice(0, colon).trimEnd()
    if (/\s#/.test(text)) return undefined // the colon is in a comment
    return { text: text.startsWith('*') ? undefined : text, end: start + colon + 1 }
  }

  /** The start of the node after the anchor and tag at `at`. */
  #withoutProperties(line: string, at: number): number {
    let start = at + line.slice(at).search(/\S|$/)
    for (;;) {
      const property = /^([&!][^\s,[\]{}]*)\s*/.exec(line.slice(start))
      if (property === null) return start
      this.#checkTag(property[1]!)
      start += property[0].length
    }
  }

  #checkTag(property: string): void {
    if (property.startsWith('!') && !KNOWN_TAGS.has(property)) throw this.#fault(`the tag ${property} is not supported`)
  }

  /** Skips the value at `at`. Its lines are further to the right than `indent`. */
  #value(line: string, at: number, indent: number): void {
    const start = this.#withoutProperties(line, at)
    const first = line[start]
    if (first === undefined || first === '#' || first === '*') return
    if (first === '|' || first === '>') this.#skipBlockScalar(indent)
    else if (first === '"' || first === "'") this.#skipQuoted(start)
    else if (first === '[' || first === '{') this.#flow(start)
    else this.#plainIndent = indent
  }

  #skipBlockScalar(indent: number): void {
    const isInside = (line: string) => /^\s*$/.test(line) || line.search(/[^ ]/) > indent
    while (this.#row + 1 < this.#lines.length && isInside(this.#lines[this.#row + 1]!)) this.#row++
  }

  /**
   * From the quote at `at` of the current line. Returns the place behind the other one, which may be on a later line.
   */
  #skipQuoted(at: number): number {
    const quote = this.#lines[this.#row]![at]
    let i = at + 1
    for (; this.#row < this.#lines.length; this.#row++, i = 0) {
      const line = this.#lines[this.#row]!
      for (; i < line.length; i++) {
        if (line[i] === '\\' && quote === '"') i++
        else if (line[i] === quote && quote === "'" && line[i + 1] === quote) i++
        else if (line[i] === quote) return i + 1
      }
    }
    throw new GivenUp()
  }

  /** From the bracket at `at` of the current line to its other one. */
  #flow(at: number): void {
    const frames: FlowFrame[] = []
    let i = at
    for (; this.#row < this.#lines.length; this.#row++, i = 0) {
      while (i < this.#lines[this.#row]!.length) {
        i = this.#flowToken(this.#lines[this.#row]!, i, frames)
        if (frames.length === 0) return
      }
    }
    throw new GivenUp()
  }

  /** Returns the place behind the token at `at`. */
  #flowToken(line: string, at: number, frames: FlowFrame[]): number {
    const character = line[at]!
    const frame = frames.at(-1)
    if (character === '[' || character === '{') {
      if (frame !== undefined) frame.candidate = undefined
      const depth = frame === undefined ? this.#depthOfSteps() : this.#depthWithin(frame)
      const keys = character === '{' ? new Map<string, number>() : undefined
      frames.push({ keys, candidate: undefined, candidateAt: undefined, isQuoted: false, depth, step: keys ? '' : 0 })
    } else if (character === ']' || character === '}') frames.pop()
    else if (character === ',') this.#flowComma(frame!)
    else if (character === ':' && (frame!.isQuoted || /^:([\s,[\]{}]|$)/.test(line.slice(at))))
      this.#flowColon(frame!, at + 1 + line.slice(at + 1).search(/\S|$/))
    else if (character === '#' && /\s/.test(line[at - 1] ?? ' ')) return line.length
    else if (character === '"' || character === "'") return this.#flowQuoted(line, at, frame!)
    else if (/\s/.test(character)) return at + 1
    else return this.#flowPlain(line, at, frame!)
    return at + 1
  }

  /** Number of wanted steps that lead to the current node; undefined if they lead elsewhere. */
  #depthOfSteps(): number | undefined {
    return (this.#steps.at(-1)?.leads ?? true) ? this.#steps.length : undefined
  }

  /** The same for the current value in a collection in brackets. */
  #depthWithin({ depth, step }: FlowFrame): number | undefined {
    return depth !== undefined && this.#wanted[depth] === step ? depth + 1 : undefined
  }

  #flowComma(frame: FlowFrame): void {
    frame.candidate = undefined
    if (frame.keys === undefined) frame.step = Number(frame.step) + 1
  }

  /** `valueAt` is where the value of the key begins in the current line. */
  #flowColon(frame: FlowFrame, valueAt: number): void {
    if (frame.keys !== undefined && frame.candidate !== undefined) {
      this.#note(frame.keys, frame.candidate)
      frame.step = frame.candidate
      const depth = this.#depthWithin(frame)
      if (depth !== undefined) this.#found(depth, frame.candidateAt!, this.#placeAt(valueAt))
    }
    frame.candidate = undefined
    frame.isQuoted = false
  }

  #flowQuoted(line: string, at: number, frame: FlowFrame): number {
    const row = this.#row
    frame.candidateAt = this.#placeAt(at)
    const end = this.#skipQuoted(at)
    frame.isQuoted = true
    frame.candidate = row === this.#row ? line.slice(at + 1, end - 1) : undefined
    return end
  }

  /** A plain scalar, an alias, an anchor or a tag. */
  #flowPlain(line: string, at: number, frame: FlowFrame): number {
    const start = this.#withoutProperties(line, at)
    if (start > at) return start
    const [text] = /^(?:[^\s,[\]{}:#]|:(?![\s,[\]{}]|$)|(?<!\s)#|\s+(?![\s#,[\]{}:]|$))+/.exec(line.slice(at)) ?? [
      line[at]!,
    ]
    frame.isQuoted = false
    frame.candidate = text.startsWith('*') ? undefined : text
    frame.candidateAt = this.#placeAt(at)
    return at + text.length
  }
}

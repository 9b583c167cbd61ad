/**
 * The forms in which the value of a secret is masked where a task prints it: the value and each of its lines, as they are, in
 * base64, URL-escaped and JSON-escaped. Pure.
 */

/** Characters of the shortest value, or line of one, that is masked. Shorter ones stand in any text. */
export const MIN_MASKED_CHARACTERS = 4

/**
 * Bytes of the largest value that is masked. No form of it has more than six times as many, which a launcher takes in one
 * variable, in hexadecimal. Larger values are files of certificates and keys for programs, which print none of them.
 */
export const MAX_MASKED_BYTES = 8 * 1024

/** Bytes of all forms of the secrets of a task. */
export const MAX_MASK_BYTES = 2 * 1024 * 1024

/** The forms of some values, each once. */
export class MaskForms {
  readonly #forms = new Map<string, Buffer>()
  #bytes = 0

  get all(): readonly Buffer[] {
    return [...this.#forms.values()]
  }

  /**
   * Why the value cannot be masked, with the remedy, as a text that follows its name; undefined if its forms were added, or it
   * is too large to have any.
   */
  add(value: Buffer): string | undefined {
    if (value.length > MAX_MASKED_BYTES) return undefined
    for (const form of formsOf(value)) {
      const key = form.toString('latin1')
      if (this.#forms.has(key)) continue
      this.#bytes += form.length
      if (this.#bytes > MAX_MASK_BYTES) {
        return `brings what is to be masked in the output over ${MAX_MASK_BYTES} bytes (with {"name", "mask": false} it is not masked)`
      }
      this.#forms.set(key, form)
    }
    return undefined
  }
}

function* formsOf(value: Buffer): Iterable<Buffer> {
  for (const part of partsOf(value)) {
    yield part
    yield* base64FormsOf(part)
    yield* escapedFormsOf(part)
  }
}

/** The value without the line break at its end, and each of its lines without the white space around it. */
function partsOf(value: Buffer): Buffer[] {
  // One byte is one character, so that bytes which are no UTF-8 stay what they are.
  const whole = value.toString('latin1').replace(/\r?\n$/, '')
  const lines = whole.split(/[\r\n]+/).map((line) => line.replace(/^[ \t]+|[ \t]+$/g, ''))
  return [...new Set([whole, ...lines])]
    .map((part) => Buffer.from(part, 'latin1'))
    .filter((part) => [...part.toString()].length >= MIN_MASKED_CHARACTERS)
}

/**
 * The characters of base64 that depend on nothing but `part`, after 0, 1 or 2 bytes of something else; and these with the
 * character that also holds zeros, as at the end of what was encoded.
 */
function* base64FormsOf(part: Buffer): Iterable<Buffer> {
  for (const before of [0, 1, 2]) {
    const text = Buffer.concat([Buffer.alloc(before), part])
      .toString('base64')
      .replace(/=+$/, '')
    const from = Math.ceil((before * 8) / 6)
    const to = Math.floor(((before + part.length) * 8) / 6)
    for (const form of new Set([text.slice(from, to), text.slice(from)])) {
      yield Buffer.from(form)
      yield Buffer.from(form.replaceAll('+', '-').replaceAll('/', '_'))
    }
  }
}

/** What no escape of URLs changes; what some leave as it is. */
const UNRESERVED = /[A-Za-z0-9_.~-]/
const URL_KEEPS: readonly RegExp[] = [
  UNRESERVED, // RFC 3986
  /[A-Za-z0-9_.~!'()*-]/, // encodeURIComponent
  /[A-Za-z0-9_.~/-]/, // urllib.parse.quote
  /[A-Za-z0-9_.*-]/, // forms; a space becomes +
  /[A-Za-z0-9_.~!'()*;/?:@&=+$,#-]/, // encodeURI
  /(?!["#'<>])[!-~]/, // the parser of URLs, in a query
  /(?!["#<>?`{}^])[!-~]/, // the same, in a path
]

function* escapedFormsOf(part: Buffer): Iterable<Buffer> {
  for (const [i, keeps] of URL_KEEPS.entries()) {
    const upper = percentEncoded(part, keeps, i === 3)
    yield Buffer.from(upper)
    yield Buffer.from(upper.replace(/%../g, (hex) => hex.toLowerCase()))
  }
  const json = JSON.stringify(part.toString()).slice(1, -1)
  if (!Buffer.from(part.toString()).equals(part)) return // no text, so no JSON holds it
  const ascii = json.replace(/[\u007f-\uffff]/g, escaped)
  const html = json.replace(/[<>&\u2028\u2029]/g, escaped)
  yield* [json, ascii, html, json.replaceAll('/', '\\/'), ascii.replaceAll('/', '\\/')].map((text) => Buffer.from(text))
}

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

function percentEncoded(part: Buffer, keeps: RegExp, isForm: boolean): string {
  let text = ''
  for (const byte of part) {
    const character = String.fromCharCode(byte)
    if (keeps.test(character)) text += character
    else text += isForm && character === ' ' ? '+' : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return text
}

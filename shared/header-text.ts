/** Text in HTTP headers. They hold bytes, which a fetch shows as Latin-1; ours are UTF-8, as what curl sends. */

/** A text as the value of a header. */
export const headerValue = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** The text of a header's value. One that is no UTF-8 is Latin-1, as the standard once had it. */
export function headerText(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}

/** Text in HTTP headers. `fetch` shows the bytes of a header as Latin-1. Ours are UTF-8, like those that curl sends. */

/** A text as the value of a header. */
export const headerValue = (text: string): string => Buffer.from(text, 'utf8').toString('latin1')

/** The text of a header's value. A value that is not UTF-8 is read as Latin-1, the older standard. */
export function headerText(value: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(value, 'latin1'))
  } catch {
    return value
  }
}

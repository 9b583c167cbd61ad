/**
 * Text of tasks for a terminal. A terminal obeys control characters, and characters without a shape of their own can make
 * text look like other text, so both are written as escapes. Pure.
 */

/**
 * Control characters, separators of lines, halves of characters, formatting characters except joiners in words, and code
 * points without a character, of which nobody knows the width.
 */
const INVISIBLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}\p{Cn}]|(?![\u200c\u200d])\p{Cf}/gu

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\x1b': '\\e' }

/** `text` on one line, harmless: `\n`, `\e[31m`, `\u{202e}`. Other text stays as it is. */
export const visibleLine = (text: string): string =>
  text.replace(INVISIBLE, (character) => SHORT[character] ?? `\\u{${character.codePointAt(0)!.toString(16)}}`)

/** `text`, harmless, with its line ends and tabs. */
export const visibleLines = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .split('\n')
    .map((line) => line.split('\t').map(visibleLine).join('\t'))
    .join('\n')

/** The JSON text `json` with these characters escaped in its strings. It has the same value. */
export const visibleJson = (json: string): string =>
  json.replace(INVISIBLE, (character) => (character === '\n' ? character : jsonEscape(character)))

const jsonEscape = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('')

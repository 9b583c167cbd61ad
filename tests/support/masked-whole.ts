/** What masking gives, by the plainest rule. */
import { MASK } from '../../shared/streams/masker.ts'

/** The first `length` characters of `whole`, of which occurrences of `texts` in `whole` are masked. */
export function maskedWhole(texts: readonly string[], whole: string, length: number = whole.length): string {
  const isCovered = new Array<boolean>(whole.length).fill(false)
  for (const text of texts) {
    for (let at = whole.indexOf(text); at >= 0; at = whole.indexOf(text, at + 1))
      isCovered.fill(true, at, at + text.length)
  }
  let masked = ''
  for (const [i, character] of [...whole.slice(0, length)].entries()) {
    if (!isCovered[i]) masked += character
    else if (!isCovered[i - 1]) masked += MASK
  }
  return masked
}

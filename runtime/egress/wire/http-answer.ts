/** The head of an answer whose body is to be masked, read strictly. Pure. Source: RFC 9112, 6.3. */
import { Malformed } from './malformed.ts'

/** Bytes of a body, infinity if it ends with the connection; `chunked` if it says where it ends. */
export type AnswerBody = number | 'chunked'

const NO_CONTENT = 204
const NOT_MODIFIED = 304

/** Headers that tell where a body ends, with nothing else in them: where there is no body, nobody has read their values. */
const FRAMING = /^(?:content-length[ \t]*:[ \t]*\d{1,15}|transfer-encoding[ \t]*:[ \t]*chunked)[ \t]*$/i

/**
 * The body of an answer whose head is `text`. Throws `Malformed` for one that the client may read differently, or whose
 * encoding hides texts.
 */
export function answerBodyOf(text: string, status: number, method: string): AnswerBody {
  const lines = text.split('\r\n').slice(1)
  if (lines.some((line) => /^[ \t]/.test(line))) throw new Malformed('an answer with a header on two lines')
  const valuesOf = (name: string) =>
    lines.flatMap((line) => {
      const colon = line.indexOf(':')
      return line.slice(0, colon).trim().toLowerCase() === name ? [line.slice(colon + 1).trim()] : []
    })
  if (method === 'HEAD' || status === NO_CONTENT || status === NOT_MODIFIED) return 0
  if (valuesOf('content-encoding').some((value) => !/^(?:identity)?$/i.test(value)))
    throw new Malformed('an answer in an encoding in which secrets cannot be masked')
  const codings = valuesOf('transfer-encoding')
  const lengths = valuesOf('content-length')
  if (codings.length > 0) {
    if (codings.length > 1 || codings[0]!.toLowerCase() !== 'chunked' || lengths.length > 0)
      throw new Malformed('an answer with a Transfer-Encoding other than chunked alone')
    return 'chunked'
  }
  const [length] = lengths
  if (length === undefined) return Number.POSITIVE_INFINITY
  if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) throw new Malformed('an answer with a wrong Content-Length')
  return Number(length)
}

/** `text` with all lines masked, but for those that tell where the body ends. */
export const maskedHead = (text: string, masked: (line: string) => string): string =>
  text
    .split('\r\n')
    .map((line) => (FRAMING.test(line) ? line : masked(line)))
    .join('\r\n')

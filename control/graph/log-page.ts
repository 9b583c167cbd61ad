/** The texts of a result, and pages of them. Pure. */
import { isObject } from '../../shared/json.ts'

/** Members of results that are texts for people, most telling first. */
const TEXTS = ['stdout', 'stderr', 'output', 'body', 'content', 'text']

/** The texts of a result by name, the most telling first; `result`, which is all of it as JSON, comes last. */
export function streamsOf(result: unknown): Map<string, string> {
  const streams = new Map<string, string>()
  if (result === undefined) return streams
  if (isObject(result)) {
    for (const name of TEXTS) {
      const text = name === 'content' ? contentText(result.content) : result[name]
      if (typeof text === 'string') streams.set(name, text)
    }
    // An empty stdout tells less than stderr.
    if (streams.get('stdout') === '' && streams.get('stderr')) {
      streams.delete('stdout')
      streams.set('stdout', '')
    }
  }
  return streams.set('result', JSON.stringify(result))
}

/** The text parts of the answer of an MCP tool. */
function contentText(content: unknown): string | undefined {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : undefined
  const texts = content.flatMap((part) => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))
  return texts.length === 0 ? undefined : texts.join('\n')
}

export interface Page {
  readonly offset: number
  readonly text: string
  readonly total_characters: number
  readonly next_offset?: number
}

/** At most `limit` characters from `offset`, which counts from the end where it is negative. No character is cut in two. */
export function page(text: string, offset: number, limit: number): Page {
  const total = text.length
  let from = Math.min(Math.max(offset < 0 ? total + offset : offset, 0), total)
  if (isInsideCharacter(text, from)) from--
  let to = Math.min(from + limit, total)
  if (isInsideCharacter(text, to)) to = to - 1 > from ? to - 1 : to + 1
  return { offset: from, text: text.slice(from, to), total_characters: total, ...(to < total && { next_offset: to }) }
}

/** Whether `index` is between the two halves of a surrogate pair. */
function isInsideCharacter(text: string, index: number): boolean {
  const [before, after] = [text.charCodeAt(index - 1), text.charCodeAt(index)]
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000
}

/** The texts of a result, and pages of them. Pure. */
import { isObject } from '../../shared/json.ts'

/** Members of results that are texts for people, in the order in which they are looked for. */
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
    // A program that wrote nothing to one of its streams has more to say in the other.
    if (streams.get('stdout') === '' && streams.get('stderr')) {
      streams.delete('stdout')
      streams.set('stdout', '')
    }
  }
  return streams.set('result', JSON.stringify(result))
}

/** The texts among the parts that an MCP tool answered. */
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

/** Whether the two halves of one character lie before and after `index`. */
function isInsideCharacter(text: string, index: number): boolean {
  const [before, after] = [text.charCodeAt(index - 1), text.charCodeAt(index)]
  return before >= 0xd800 && before < 0xdc00 && after >= 0xdc00 && after < 0xe000
}

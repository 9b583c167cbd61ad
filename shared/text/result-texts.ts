/** The texts for people in the result of a task. Pure. */
import { isObject } from './json.ts'

/** Members of results with texts for people, most important first. */
const TEXTS = ['stdout', 'stderr', 'output', 'body', 'content', 'text']

/** The texts of a result by name, the most important first. */
export function resultTexts(result: unknown): Map<string, string> {
  const texts = new Map<string, string>()
  if (!isObject(result)) return texts
  for (const name of TEXTS) {
    const text = name === 'content' ? contentText(result.content) : result[name]
    if (typeof text === 'string') texts.set(name, text)
  }
  // A nonempty stderr is more important than an empty stdout.
  if (texts.get('stdout') === '' && texts.get('stderr')) {
    texts.delete('stdout')
    texts.set('stdout', '')
  }
  return texts
}

/** The text parts of the answer of an MCP tool. */
function contentText(content: unknown): string | undefined {
  if (!Array.isArray(content)) return typeof content === 'string' ? content : undefined
  const texts = content.flatMap((part) => (isObject(part) && typeof part.text === 'string' ? [part.text] : []))
  return texts.length === 0 ? undefined : texts.join('\n')
}

/** Texts in the outcome of a task, and pages of them. Pure. */
import type { ProgressEntry } from '../../shared/contract/control.ts'
import { isObject } from '../../shared/text/json.ts'
import { resultTexts } from '../../shared/text/result-texts.ts'

/**
 * The texts of a result by name, the most important first. Then the progress that the task reported. `result`, the
 * whole result as JSON, comes last.
 */
export function streamsOf(result: unknown, progress: readonly ProgressEntry[] = []): Map<string, string> {
  const streams = resultTexts(result)
  if (progress.length > 0) streams.set('progress', progressLines(progress))
  if (result !== undefined) streams.set('result', JSON.stringify(result))
  return streams
}

/** Progress reports as lines. A report without a message becomes its data as JSON. */
export const progressLines = (entries: readonly ProgressEntry[]): string =>
  entries.map(({ message, data }) => `${message ?? JSON.stringify(data ?? null)}\n`).join('')

/** The streams of the log of every task. */
export const LOG_STREAMS = ['stdout', 'stderr'] as const
export type LogStream = (typeof LOG_STREAMS)[number]

export interface LogText {
  readonly text: string
  /** Whether the task wrote more than its result holds. */
  readonly isTruncated: boolean
}

/**
 * The log in `result`. If the result has no `stdout`, its most important text stands for it, or else the result as
 * JSON.
 */
export function logTextOf(result: unknown, stream: LogStream): LogText {
  const texts = resultTexts(result)
  const [first] = texts.keys()
  const name = stream === 'stderr' || texts.has('stdout') ? stream : first
  const text = name === undefined ? jsonLine(result) : (texts.get(name) ?? '')
  const flags = isObject(result) ? result : {}
  return { text, isTruncated: (flags[`${name}_truncated`] ?? flags.truncated) === true && text !== '' }
}

const jsonLine = (result: unknown): string => (result === undefined ? '' : `${JSON.stringify(result)}\n`)

export interface Page {
  readonly offset: number
  readonly text: string
  readonly total_characters: number
  readonly next_offset?: number
}

/** Up to `limit` characters from `offset`. A negative offset counts from the end. No surrogate pair is split. */
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

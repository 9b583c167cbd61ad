/**
 * Makes the result of a task with `for_each`: the results of its children as an array in their order, null for a child that
 * did not succeed. An element of a group has an object of the results of its members; without `for_each` that is all.
 *
 * A small result refers to the results of the children. A large one becomes a file, of the texts of the results: no value of
 * megabytes is made. All of it works in steps.
 */

import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { jsonText } from '../json/pieces.ts'
import type { KeptResults } from '../log/keeper.ts'
import type { Failure } from '../rules/failure.ts'
import { isLargeJson, LARGE_RESULT_CHARACTERS, ResultFile } from '../rules/result-file.ts'
import type { FanOut } from '../task/fan-out.ts'
import type { Graph, Task } from '../task/graph.ts'
import type { GraphRoom } from './graph-room.ts'
import { parsedResult } from './referenced-record.ts'

/** Characters of JSON that the results of all children may have together. Each child keeps its own result. */
export const MAX_FAN_OUT_RESULT_CHARACTERS = 64 * 1024 * 1024

export type FanOutResult =
  /** The value counts as stored until `release` is called: other lists of the graph are made at the same time. */
  | { readonly value: unknown; readonly release: () => void }
  /** The results have too many characters, or more than the graph may store. */
  | { readonly tooLarge: Failure }
  /** The result of this child is lost. */
  | { readonly lost: string }

/** What reads the results of children, and writes that of their task. */
type Results = Pick<KeptResults, 'read' | 'keepJson'>

export async function fanOutResult(fanOut: FanOut<Task>, results: Results, room: GraphRoom): Promise<FanOutResult> {
  const small = await runCooperatively(smallResult(fanOut))
  if (small === undefined) return await largeResult(fanOut, results, room)
  const { graph } = fanOut.parent
  const bytes = room.bytesOf(graph, small)
  const tooLarge = room.faultOf(graph, 'the list of results', bytes)
  return tooLarge === undefined ? { value: small, release: room.reserve(graph, bytes) } : { tooLarge }
}

/** Undefined if it is large. */
function* smallResult(fanOut: FanOut<Task>): Steps<unknown> {
  const results: unknown[] = []
  for (let i = 0; i < fanOut.count; i++) {
    const result = resultOf(fanOut.child(i))
    if (result instanceof ResultFile) return undefined
    results.push(result)
    if (isYieldDue(i)) yield
  }
  const { members, hasList } = fanOut
  if (members === undefined) return isLargeJson(results) ? undefined : results
  const elements: [string, unknown][][] = []
  for (let i = 0; i < results.length; i++) {
    const { length } = members.tasks
    if (i % length === 0) elements.push([])
    elements.at(-1)!.push([members.tasks[i % length]!.id, results[i]])
    if (isYieldDue(i)) yield
  }
  const objects = elements.map((results) => Object.fromEntries(results))
  const whole = hasList ? objects : objects[0]
  return isLargeJson(whole) ? undefined : whole
}

async function largeResult(fanOut: FanOut<Task>, results: Results, room: GraphRoom): Promise<FanOutResult> {
  const { graph } = fanOut.parent
  const texts: string[] = []
  let characters = 1
  for (let i = 0; i < fanOut.count; i++) {
    const child = fanOut.child(i)
    const result = resultOf(child)
    let text: string
    if (result instanceof ResultFile) {
      const stored = await results.read(result)
      if ('lost' in stored) return { lost: `task ${child.id}: ${stored.lost}` }
      text = stored.json
    } else {
      text = await runCooperatively(jsonText(result))
    }
    const { before, after } = surroundings(fanOut, i)
    characters += before.length + text.length + after.length
    if (characters > MAX_FAN_OUT_RESULT_CHARACTERS) return { tooLarge: tooLargeFault(graph, fanOut.count) }
    const tooLarge = room.faultOf(graph, 'the list of results', characters)
    if (tooLarge !== undefined) return { tooLarge }
    texts.push(before + text + after)
  }
  if (fanOut.hasList) texts.push(fanOut.count === 0 ? '[]' : ']')
  const release = room.reserve(graph, characters)
  const file = await results.keepJson(fanOut.parent, piecesOf(texts))
  return { value: file ?? (await parsedResult(texts.join(''))), release }
}

const tooLargeFault = ({ id }: Graph, count: number): Failure => ({
  code: 'resource_limit_exceeded',
  message:
    `the results of ${count} children have more than ${MAX_FAN_OUT_RESULT_CHARACTERS} characters as JSON together: ` +
    `read them one by one, at /graphs/${id}/tasks/`,
})

/** What stands before and after the result of the child at `i` in the text of the whole. */
function surroundings(
  { members, hasList }: FanOut<Task>,
  i: number,
): { readonly before: string; readonly after: string } {
  const comma = i === 0 ? '' : ','
  const list = hasList && i === 0 ? '[' : ''
  if (members === undefined) return { before: list + comma, after: '' }
  const { length } = members.tasks
  const member = i % length
  const name = JSON.stringify(members.tasks[member]!.id)
  return { before: `${list}${comma}${member === 0 ? '{' : ''}${name}:`, after: member === length - 1 ? '}' : '' }
}

/** `texts` as few large pieces, as thousands of writes would take long. */
function piecesOf(texts: readonly string[]): string[] {
  const pieces: string[] = []
  let piece = ''
  for (const text of texts) {
    piece += text
    if (piece.length < LARGE_RESULT_CHARACTERS) continue
    pieces.push(piece)
    piece = ''
  }
  if (piece !== '') pieces.push(piece)
  return pieces
}

const resultOf = (child: Task): unknown =>
  child.status === 'success' && !child.isDeleted ? (child.result ?? null) : null

/**
 * Makes the result of a task with `for_each`: the results of its children as an array in their order, null for a child that
 * did not succeed.
 *
 * A small array refers to the results of the children. A large one becomes a file, of the texts of the results: no value of
 * megabytes is made. All of it works in steps.
 */

import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { jsonText } from '../json/pieces.ts'
import type { KeptResults } from '../log/keeper.ts'
import type { Failure } from '../rules/failure.ts'
import { isLargeJson, LARGE_RESULT_CHARACTERS, ResultFile } from '../rules/result-file.ts'
import type { FanOut, Graph, Task } from '../task/graph.ts'
import type { GraphRoom } from './graph-room.ts'

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

export async function fanOutResult(fanOut: FanOut, results: Results, room: GraphRoom): Promise<FanOutResult> {
  const small = await runCooperatively(smallResult(fanOut))
  if (small === undefined) return await largeResult(fanOut, results, room)
  const { graph } = fanOut.parent
  const bytes = room.bytesOf(graph, small)
  const tooLarge = room.faultOf(graph, 'the list of results', bytes)
  return tooLarge === undefined ? { value: small, release: room.reserve(graph, bytes) } : { tooLarge }
}

/** Undefined if the array is large. */
function* smallResult(fanOut: FanOut): Steps<unknown[] | undefined> {
  const results: unknown[] = []
  for (let i = 0; i < fanOut.count; i++) {
    const result = resultOf(fanOut.child(i))
    if (result instanceof ResultFile) return undefined
    results.push(result)
    if (isYieldDue(i)) yield
  }
  return isLargeJson(results) ? undefined : results
}

async function largeResult(fanOut: FanOut, results: Results, room: GraphRoom): Promise<FanOutResult> {
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
    characters += text.length + 1
    if (characters > MAX_FAN_OUT_RESULT_CHARACTERS) return { tooLarge: tooLargeFault(graph, fanOut.count) }
    const tooLarge = room.faultOf(graph, 'the list of results', characters)
    if (tooLarge !== undefined) return { tooLarge }
    texts.push(text)
  }
  const release = room.reserve(graph, characters)
  const file = await results.keepJson(fanOut.parent, piecesOf(texts))
  return { value: file ?? (await runCooperatively(valuesOf(texts))), release }
}

const tooLargeFault = ({ id }: Graph, count: number): Failure => ({
  code: 'resource_limit_exceeded',
  message:
    `the results of ${count} children have more than ${MAX_FAN_OUT_RESULT_CHARACTERS} characters as JSON together: ` +
    `read them one by one, at /graphs/${id}/tasks/`,
})

function* valuesOf(texts: readonly string[]): Steps<unknown[]> {
  const values: unknown[] = []
  let characters = 0
  for (const text of texts) {
    values.push(JSON.parse(text))
    characters += text.length
    if (characters < LARGE_RESULT_CHARACTERS) continue
    characters = 0
    yield
  }
  return values
}

/** The pieces of the array of `texts`: few large ones, as thousands of writes would take long. */
function piecesOf(texts: readonly string[]): string[] {
  const pieces: string[] = []
  let piece = '['
  for (let i = 0; i < texts.length; i++) {
    piece += (i === 0 ? '' : ',') + texts[i]!
    if (piece.length < LARGE_RESULT_CHARACTERS) continue
    pieces.push(piece)
    piece = ''
  }
  pieces.push(`${piece}]`)
  return pieces
}

const resultOf = (child: Task): unknown =>
  child.status === 'success' && !child.isDeleted ? (child.result ?? null) : null

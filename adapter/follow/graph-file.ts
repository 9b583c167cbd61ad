/** The file of a graph, as `run` reads and sends it. Pure. */
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { type Expectation, expectationOf } from './expectation.ts'

/**
 * The bytes to submit: `bytes` with `"scope": "graph"`, so that the same file can be run again and again. A file that
 * has a scope, or is no JSON object, is left as it is; the service judges it.
 */
export function withScope(bytes: Uint8Array): Uint8Array {
  const text = new TextDecoder().decode(bytes)
  const graph = jsonOrUndefined(text)
  if (!isObject(graph) || Object.hasOwn(graph, 'scope')) return bytes
  // The rest stays as it is written: numbers may be larger than those of JavaScript.
  const begin = text.indexOf('{') + 1
  const comma = Object.keys(graph).length === 0 ? '' : ', '
  return new TextEncoder().encode(`${text.slice(0, begin)}"scope": "graph"${comma}${text.slice(begin)}`)
}

/** The annotations for people, by task. */
export function expectationsIn(bytes: Uint8Array): Map<string, Expectation> {
  const graph = jsonOrUndefined(new TextDecoder().decode(bytes))
  const tasks = isObject(graph) && Array.isArray(graph.tasks) ? graph.tasks : []
  const found = new Map<string, Expectation>()
  for (const task of tasks) {
    if (!isObject(task) || typeof task.id !== 'string' || !isObject(task.annotations)) continue
    found.set(task.id, expectationOf(task.annotations))
  }
  return found
}

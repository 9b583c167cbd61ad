/**
 * Bounds what one graph stores: the results and the resolved inputs of its tasks together (`--max-graph-result-bytes`).
 *
 * A few kilobytes of a submission may become gigabytes: thousands of children of a task with `for_each` get and return
 * values of megabytes each. So the size of each value is determined before it is written. Values that are being written
 * count too: many attempts of a graph may end at the same time.
 */
import { ExecutionError } from '../executors/executor.ts'
import type { Failure } from '../rules/failure.ts'
import { aboutCharacters } from '../rules/result-file.ts'
import type { Graph } from '../task/graph.ts'

export class GraphRoom {
  readonly #maxBytes: number
  /** Bytes that are being written. */
  readonly #reserved = new WeakMap<Graph, number>()

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Bytes that `graph` may store in addition. */
  left(graph: Graph): number {
    return Math.max(0, this.#maxBytes - graph.storedBytes - (this.#reserved.get(graph) ?? 0))
  }

  /** Why `value`, such as `the result`, is not stored; undefined if it fits. */
  faultOf(graph: Graph, value: string, bytes: number): Failure | undefined {
    const left = this.left(graph)
    if (bytes <= left) return undefined
    const message =
      `${value} is too large to be kept: its graph may store ${left} more bytes of results and inputs, of ${this.#maxBytes} ` +
      'in all (--max-graph-result-bytes): return less, pass on files, divide the graph, or raise the limit'
    return { code: 'resource_limit_exceeded', message }
  }

  /** Bytes of a result as JSON, about. Stops counting once there is no room for more. */
  bytesOf(graph: Graph, result: unknown): number {
    return result === undefined ? 0 : aboutCharacters(result, this.left(graph) + 1)
  }

  /** Throws `ExecutionError` if an input of `bytes` is not stored. */
  checkInput(graph: Graph, bytes: number): void {
    const fault = this.faultOf(graph, 'the input with the values of its placeholders', bytes)
    if (fault !== undefined) throw new ExecutionError(fault.code, fault.message, { isFinal: true })
  }

  /** Counts `bytes` as stored until the function that it returns is called: then they are, or never will be. */
  reserve(graph: Graph, bytes: number): () => void {
    this.#add(graph, bytes)
    return () => this.#add(graph, -bytes)
  }

  #add(graph: Graph, bytes: number): void {
    this.#reserved.set(graph, (this.#reserved.get(graph) ?? 0) + bytes)
  }
}

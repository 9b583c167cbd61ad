/**
 * Reads the output of the tasks of a graph, of many at the same time. A task waits while `slots` others are read; the
 * service keeps its output meanwhile, so nothing is missed. Each task is read once, to its end.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { CallFailed, type ServiceClient } from '../../shared/http/client.ts'
import type { TaskProgress } from '../../shared/text/live-view/progress.ts'
import { type OutputStreamName, TaskOutput } from './task-output.ts'

/** Tasks whose output is read at the same time. Each takes two connections; Bun opens 256. */
export const MAX_READ_OUTPUTS = 32

/** Where the output of one task goes. */
export interface OutputSink {
  /** Resolves once more may come. */
  show(chunk: Uint8Array, stream: OutputStreamName): Promise<void>
  /** Called once, after the last `show`. `fault` says why the output could not be read. */
  end(output: TaskOutput, fault?: string): Promise<void>
}

export interface GraphOutputRequest {
  readonly client: ServiceClient
  readonly graphId: string
  readonly slots: number
  readonly isFollowed: boolean
  readonly tail?: number | undefined
  /** Called when the reading of a task begins. `maxKeptBytes`: those of each stream that stay in its `TaskOutput`. */
  readonly begin: (task: TaskProgress) => { readonly sink: OutputSink; readonly maxKeptBytes: number }
  readonly signal: AbortSignal
}

const NOT_FOUND = 404

export class GraphOutput {
  readonly #request: GraphOutputRequest
  readonly #known = new Set<string>()
  readonly #waiting = new Set<TaskProgress>()
  readonly #reading = new Set<Promise<void>>()

  constructor(request: GraphOutputRequest) {
    this.#request = request
  }

  /** Reads the output of a task unless that was asked for before. */
  add(task: TaskProgress): void {
    if (this.#known.has(task.id)) return
    this.#known.add(task.id)
    this.#waiting.add(task)
    this.#fillSlots()
  }

  /** Resolves once all output was read, or the signal has fired. */
  async whenRead(): Promise<void> {
    while (this.#reading.size > 0) await Promise.race(this.#reading)
  }

  #fillSlots(): void {
    for (const task of this.#waiting) {
      if (this.#reading.size >= this.#request.slots || this.#request.signal.aborted) return
      this.#waiting.delete(task)
      const reading: Promise<void> = this.#read(task).finally(() => {
        this.#reading.delete(reading)
        this.#fillSlots()
      })
      this.#reading.add(reading)
    }
  }

  async #read(task: TaskProgress): Promise<void> {
    const { client, graphId, isFollowed, tail, begin, signal } = this.#request
    const { sink, maxKeptBytes } = begin(task)
    const output = new TaskOutput(client, maxKeptBytes)
    const path = `/graphs/${encodeURIComponent(graphId)}/tasks/${encodeURIComponent(task.id)}`
    const onChunk = sink.show.bind(sink)
    const request = { path, tail, isFollowed, onChunk, onOutage: () => {}, signal }
    const fault = await output.read(request).then(
      () => undefined,
      (error) => (signal.aborted || isGone(error) ? undefined : messageOf(error)),
    )
    await sink.end(output, fault)
  }
}

/** Whether the task was deleted, or the service is too old to tell. */
const isGone = (error: unknown): boolean => error instanceof CallFailed && error.statusCode === NOT_FOUND

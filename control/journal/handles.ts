/**
 * Calls of MCP tools by their handles. A handle is the id of the task, so that it needs no record of its own and
 * survives whatever the task survives.
 */
import type { HandleRecord } from '../../shared/contract/mcp.ts'
import { ServiceError } from '../../shared/errors.ts'
import type { Task } from '../graph/graph.ts'
import { handleRecord } from '../graph/handle.ts'
import { ResultFile } from '../graph/result-file.ts'
import type { TaskStore } from '../store/tasks.ts'
import type { ResultFiles } from './result-files.ts'

export class Handles {
  readonly #store: TaskStore
  readonly #resultFiles: Pick<ResultFiles, 'read'>

  constructor(store: TaskStore, resultFiles: Pick<ResultFiles, 'read'>) {
    this.#store = store
    this.#resultFiles = resultFiles
  }

  /** What is answered to whoever made the call, which may have come further since. */
  accepted(id: string): HandleRecord {
    const task = this.#call(id)
    if (task === undefined) throw new ServiceError(404, `handle not found: ${id}`)
    const { task_id, handle_id, started_at } = handleRecord(task)
    return { task_id, status: 'accepted', handle_id, started_at, progress: [] }
  }

  /** The record as JSON, or undefined when there is no such call. */
  json(id: string): string | Promise<string> | undefined {
    const task = this.#call(id)
    if (task === undefined) return undefined
    return task.result instanceof ResultFile ? this.#withOutput(task, task.result) : JSON.stringify(handleRecord(task))
  }

  /** The record, or undefined when there is no such call. */
  async record(id: string): Promise<HandleRecord | undefined> {
    const text = await this.json(id)
    return text === undefined ? undefined : JSON.parse(text)
  }

  async #withOutput(task: Task, file: ResultFile): Promise<string> {
    const record = handleRecord(task)
    const output = await this.#resultFiles.read(file)
    if ('json' in output) return `${JSON.stringify(record).slice(0, -1)},"output":${output.json}}`
    const { error } = record
    const message = error === undefined ? output.lost : `${error.message}; ${output.lost}`
    return JSON.stringify({ ...record, error: { code: 'internal', ...error, message } })
  }

  #call(id: string): Task | undefined {
    const task = this.#store.get(id)
    return task?.type === 'mcp' ? task : undefined
  }
}

/** The category `os`: built-in tools that work on this machine. A task's `tool_name` picks one. */
import { type ExecutableTask, type Executor, type ExecutorContext, invalidInput } from '../executor.ts'

/** One tool. `execute` gets the task's input as the caller gave it. */
export interface OsTool {
  readonly name: string
  execute(input: unknown, context: ExecutorContext): unknown
}

export class OsExecutor implements Executor {
  readonly type = 'os'
  readonly #tools: ReadonlyMap<string, OsTool>

  constructor(tools: Iterable<OsTool>) {
    this.#tools = new Map([...tools].map((tool) => [tool.name, tool]))
  }

  execute(task: ExecutableTask, context: ExecutorContext): unknown {
    const tool = this.#tools.get(task.toolName ?? '')
    if (tool === undefined) {
      const available = [...this.#tools.keys()].sort().join(', ')
      throw invalidInput(`unknown os tool "${task.toolName ?? ''}" (available: ${available})`)
    }
    return tool.execute(task.input, context)
  }
}

/** The category `os`: built-in tools that work on this machine. A task's `tool_name` picks one. */
import type { TObject } from '@sinclair/typebox'
import type { SecretNames } from '../../../shared/request/secrets.ts'
import {
  type ExecutableTask,
  type Executor,
  type ExecutorContext,
  invalidInput,
  type SecretSending,
  type SecretTaking,
  type ToolParameters,
} from '../executor.ts'
import type { ToolParams } from '../params.ts'

/** One tool. `execute` gets the unchecked input of the task. */
export interface OsTool {
  readonly name: string
  readonly params: ToolParams<TObject>
  /** Throws the error that every execution of this input would throw. Default: check against `params`. */
  checkInput?(input: unknown, secrets?: SecretNames, tenant?: string): void
  /** Present if the tool takes secrets. */
  readonly secrets?: SecretTaking
  /** As `InputReview.sendingOf`. */
  sendingOf?(input: unknown): SecretSending
  execute(input: unknown, context: ExecutorContext, secrets?: SecretNames): unknown
  /** As `Executor.knownResult`. */
  knownResult?(input: unknown): unknown
}

export class OsExecutor implements Executor {
  readonly type = 'os'
  readonly #tools: ReadonlyMap<string, OsTool>
  readonly #parameters: ReadonlyMap<string, ToolParameters>

  constructor(tools: Iterable<OsTool>) {
    this.#tools = new Map([...tools].map((tool) => [tool.name, tool]))
    this.#parameters = new Map(
      [...this.#tools.values()].map(({ name, params: { schema } }) => [name, { label: `os.${name}`, schema }]),
    )
  }

  parametersOf(toolName = ''): ToolParameters | undefined {
    return this.#parameters.get(toolName)
  }

  secretsOf(toolName = ''): SecretTaking | undefined {
    return this.#tools.get(toolName)?.secrets
  }

  sendingOf(toolName = '', input?: unknown): SecretSending | undefined {
    return this.#tools.get(toolName)?.sendingOf?.(input)
  }

  checkInput(toolName: string | undefined, input: unknown, secrets?: SecretNames, tenant?: string): void {
    const tool = this.#tool(toolName)
    if (tool.checkInput === undefined) tool.params.parse(input)
    else tool.checkInput(input, secrets, tenant)
  }

  execute(task: ExecutableTask, context: ExecutorContext): unknown {
    return this.#tool(task.toolName).execute(task.input, context, task.secrets)
  }

  knownResult({ toolName = '', input }: Pick<ExecutableTask, 'toolName' | 'input'>): unknown {
    return this.#tools.get(toolName)?.knownResult?.(input)
  }

  #tool(name = ''): OsTool {
    const tool = this.#tools.get(name)
    if (tool !== undefined) return tool
    const available = [...this.#tools.keys()].sort().join(', ')
    throw invalidInput(`unknown os tool "${name}" (available: ${available})`)
  }
}

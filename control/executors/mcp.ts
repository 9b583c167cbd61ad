/**
 * The category `mcp`: tools of MCP servers.
 *
 * `discover` lists the tools, `call` calls one (`<server>/<tool>` is short for that), and `poll` reads a call that was
 * submitted with `POST /mcp/call`. All tasks share the connection to a server. When an attempt is stopped, only its
 * call is cancelled, and the server is told.
 */

import { messageOf } from '../../shared/contract/errors.ts'
import type { HandleRecord, McpTools } from '../../shared/contract/mcp.ts'
import { Type } from '../../shared/contract/schema-builder.ts'
import type { SecretsDirectory } from '../../shared/files/secrets-directory.ts'
import type { Progress } from '../mcp-client/connection.ts'
import { McpFault, shortened } from '../mcp-client/fault.ts'
import type { CallAnswer, McpServers } from '../mcp-client/servers.ts'
import { toolList } from '../mcp-client/tools.ts'
import type { AddressGuard } from '../outbound/address-guard.ts'
import type { CarriedSecrets } from '../outbound/carried-secrets.ts'
import { InputWithSecrets } from '../rules/secret-places.ts'
import {
  type ExecutableTask,
  ExecutionError,
  type Executor,
  type ExecutorContext,
  invalidInput,
  type SecretSending,
  type ToolParameters,
  throwIfStopped,
} from './executor.ts'
import { ToolParams } from './params.ts'
import { type SentSecrets, sendingSecrets } from './sent-secrets.ts'

const discoverParams = new ToolParams(
  'discover',
  Type.Object({ server: Type.Optional(Type.String({ expected: 'string' })) }),
)

const callParams = new ToolParams(
  'call',
  Type.Object({
    server: Type.Optional(Type.String({ expected: 'string' })),
    tool: Type.String({ missing: 'tool is required', expected: 'string' }),
    arguments: Type.Optional(Type.Unknown()),
  }),
)

const pollParams = new ToolParams(
  'poll',
  Type.Object({ handle_id: Type.String({ missing: 'handle_id is required', expected: 'string' }) }),
)

const PARAMETERS: ReadonlyMap<string, ToolParameters> = new Map(
  [discoverParams, callParams, pollParams].map(({ tool, schema }) => [tool, { label: `mcp.${tool}`, schema }]),
)

/** Minimum milliseconds between two progress entries of a call. A server may report every microsecond. */
export const PROGRESS_INTERVAL_MS = 200

/** Maximum characters of a server's message in a progress entry. */
const MAX_PROGRESS_CHARACTERS = 500

/**
 * The call with this handle, in this graph or else of the service; undefined if there is none. Rejects if the replica that
 * has it cannot be asked.
 */
type Poll = (handleId: string, graphId: string) => Promise<HandleRecord | undefined>

interface McpCall {
  readonly server: string | undefined
  readonly tool: string
  readonly args: unknown
}

const NOT_CALLED = 'the call was not made any more'

export class McpExecutor implements Executor {
  readonly type = 'mcp'
  readonly #servers: McpServers
  readonly #pollCall: Poll
  readonly #secrets: SecretsDirectory
  readonly #guard: AddressGuard

  /** `guard` decides which servers tasks of tenants may call. */
  constructor(servers: McpServers, pollCall: Poll, secrets: SecretsDirectory, guard: AddressGuard) {
    this.#servers = servers
    this.#pollCall = pollCall
    this.#secrets = secrets
    this.#guard = guard
  }

  /** The server, or its host, is known once the call is made. */
  sendingOf(): SecretSending {
    return { directory: this.#secrets, asker: { type: 'mcp', to: [] } }
  }

  /** Does not check arguments of tools: the server does. */
  parametersOf(toolName = ''): ToolParameters | undefined {
    return PARAMETERS.get(toolName)
  }

  checkInput(toolName = '', input: unknown): void {
    const servers = this.#servers
    try {
      if (toolName === 'discover') {
        const { server } = discoverParams.parse(input)
        if (server !== undefined) servers.checkServer(server)
      } else if (toolName === 'call') servers.checkCall(callParams.parse(input))
      else if (toolName === 'poll') pollParams.parse(input)
      else {
        this.#checkToolName(toolName)
        servers.checkCall({ tool: toolName })
      }
    } catch (error) {
      fail(error)
    }
  }

  execute({ toolName, input }: ExecutableTask, context: ExecutorContext): unknown {
    if (!(input instanceof InputWithSecrets)) return this.#execute(toolName, input, context)
    const sent: SentSecrets = { directory: this.#secrets, sender: 'mcp', isLine: () => false, context }
    return sendingSecrets(sent, input, (whole, secrets) => this.#execute(toolName, whole, context, secrets))
  }

  #execute(toolName = '', input: unknown, context: ExecutorContext, secrets?: CarriedSecrets): unknown {
    switch (toolName) {
      case 'discover':
        return this.#discover(discoverParams.parse(input).server, context)
      case 'call': {
        const { server, tool, arguments: args } = callParams.parse(input)
        return this.#call({ server, tool, args }, context, secrets)
      }
      case 'poll':
        return this.#poll(pollParams.parse(input).handle_id, context.graphId)
    }
    this.#checkToolName(toolName)
    return this.#call({ server: undefined, tool: toolName, args: input }, context, secrets)
  }

  #checkToolName(toolName: string): void {
    const servers = this.#servers
    if (!toolName.includes('/') && toolName !== 'echo' && !servers.hasConfigured) {
      throw invalidInput(`unknown mcp tool "${toolName}" (available: builtin/echo, call, discover, poll)`)
    }
    if (toolName === '') throw invalidInput('unknown mcp tool "" (available: call, discover, poll, <server>/<tool>)')
  }

  async #discover(server: string | undefined, context: ExecutorContext): Promise<McpTools> {
    await context.begin()
    return toolList(await this.#servers.discover(server, context.signal).catch(fail))
  }

  /** Returns no promise if neither the begin nor the server takes time: `echo` may be called many times in a chain. */
  #call(call: McpCall, context: ExecutorContext, secrets: CarriedSecrets | undefined): unknown {
    throwIfStopped(context, NOT_CALLED)
    const beginning = context.begin()
    if (beginning === undefined) return this.#send(call, context, secrets)
    return beginning.then(() => {
      throwIfStopped(context, NOT_CALLED)
      return this.#send(call, context, secrets)
    })
  }

  #send(call: McpCall, context: ExecutorContext, secrets: CarriedSecrets | undefined): unknown {
    const { signal, tenant } = context
    try {
      const answer = this.#servers.call(call, {
        ...{ signal, guard: tenant === undefined ? undefined : this.#guard.for(tenant) },
        onProgress: progressOf(context, secrets),
        trace: () => context.trace,
        secrets,
      })
      return answer instanceof Promise ? answer.then(resultOf).catch(fail) : answer
    } catch (error) {
      return fail(error)
    }
  }

  async #poll(handleId: string, graphId: string): Promise<HandleRecord> {
    const record = await this.#pollCall(handleId, graphId).catch((error) => {
      throw new ExecutionError('external_failure', messageOf(error), { cause: error, retryable: true })
    })
    if (record !== undefined) return record
    throw new ExecutionError('not_found', `handle not found: ${handleId}`)
  }
}

/** The answer. Throws if the tool reports an error, with the text of the tool. */
function resultOf(answer: CallAnswer): CallAnswer {
  const { server, tool, content, isError } = answer
  if (isError !== true) return answer
  const text = content.flatMap((part) => (part.type === 'text' && part.text ? [part.text] : [])).join('\n')
  const message = text === '' ? `tool ${tool} of mcp server ${server} failed and did not say why` : shortened(text)
  throw new ExecutionError('external_failure', message, { result: answer })
}

function fail(error: unknown): never {
  if (!(error instanceof McpFault)) throw error
  throw new ExecutionError(error.code, messageOf(error), { cause: error })
}

/** Adds reports of a server to the progress of the task, at a limited rate. */
function progressOf(context: ExecutorContext, secrets: CarriedSecrets | undefined) {
  let nextAt = 0
  return ({ progress, total, message }: Progress) => {
    const now = performance.now()
    if (now < nextAt) return
    nextAt = now + PROGRESS_INTERVAL_MS
    const shown = message === undefined || secrets === undefined ? message : secrets.maskedText(message)
    context.progress(shown === undefined ? undefined : shortened(shown, MAX_PROGRESS_CHARACTERS), {
      progress,
      ...(total !== undefined && { total }),
    })
  }
}

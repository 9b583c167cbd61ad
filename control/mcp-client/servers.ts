/**
 * All MCP servers that tasks may call: the configured ones and the builtin one.
 *
 * A tool is named `<server>/<tool>`. A name without a slash means the builtin `echo`, or else the only server with such
 * a tool. Without configured servers, calls of any name are echoed.
 */
import { messageOf } from '../../shared/contract/errors.ts'
import { type SecretTarget, secretTargetOf } from '../../shared/egress/secret-host.ts'
import type { Log } from '../../shared/logs/log.ts'
import { isObject } from '../../shared/text/json.ts'
import { type AddressGuard, AddressRefused } from '../outbound/address-guard.ts'
import { BUILTIN_SERVER, type McpServerConfig } from './config.ts'
import type { CallOptions, ToolResult } from './connection.ts'
import { McpFault } from './fault.ts'
import type { ProcessRecord } from './process-record.ts'
import type { McpServer, ServerOptions } from './server.ts'
import type { FoundTools, NamedTool } from './tools.ts'

export interface ToolCall {
  /** Undefined: the server is part of `tool`, or is searched for. */
  readonly server: string | undefined
  readonly tool: string
  readonly args: unknown
}

/** A call of a tenant may not go to every server. */
export type GuardedCall = CallOptions & { readonly guard?: AddressGuard | undefined }

export type CallAnswer = { readonly server: string; readonly tool: string } & ToolResult

/** The parts of the service that local servers need. */
export interface McpServersOptions {
  readonly killGraceMs: number
  /** The environment variables that every started program gets. */
  readonly env: Readonly<Record<string, string>>
  /** The mark of the data directory. */
  readonly serviceId: string
  readonly record: Pick<ProcessRecord, 'add' | 'remove'>
  readonly log: Log
}

const optionsFor = ({ name }: McpServerConfig, options: McpServersOptions): ServerOptions => {
  const { killGraceMs, env, serviceId, record, log } = options
  return {
    ...{ killGraceMs, env, log },
    mark: `${serviceId}/mcp/${name}`,
    onStarted: (pid) => record.add(pid),
    onEnded: (pid) => record.remove(pid),
  }
}

export class McpServers {
  readonly #configs: readonly McpServerConfig[]
  readonly #options: McpServersOptions
  /** Servers by name. Created on first use, because their code is loaded then. */
  #servers: Promise<ReadonlyMap<string, McpServer>> | undefined
  #isClosed = false

  constructor(configs: readonly McpServerConfig[], options: McpServersOptions) {
    this.#configs = configs
    this.#options = options
  }

  #loaded(): Promise<ReadonlyMap<string, McpServer>> {
    if (this.#isClosed) return Promise.reject(new McpFault('cancelled', 'the service is stopping'))
    this.#servers ??= import('./server.ts').then(
      ({ McpServer }) =>
        new Map(this.#configs.map((config) => [config.name, new McpServer(config, optionsFor(config, this.#options))])),
    )
    return this.#servers
  }

  /** Whether there are servers other than the builtin one. */
  get hasConfigured(): boolean {
    return this.#configs.length > 0
  }

  get names(): string[] {
    return [BUILTIN_SERVER, ...this.#configs.map(({ name }) => name)].sort()
  }

  /** Whether a server is a command, which runs with the rights of the service. */
  get hasCommands(): boolean {
    return this.#configs.some(({ kind }) => kind === 'stdio')
  }

  isCommand(name: string): boolean {
    return this.#configs.some((config) => config.kind === 'stdio' && config.name === name)
  }

  /** Throws `McpFault` for a name that no server has. */
  checkServer(name: string): void {
    const { names } = this
    if (names.includes(name)) return
    throw new McpFault('invalid_input', `unknown mcp server "${name}" (available: ${names.join(', ')})`)
  }

  /** As `checkServer`, for a call: without configured servers every name goes to the builtin echo. */
  checkCall({ server, tool }: { readonly server?: string | undefined; readonly tool: string }): void {
    const [given] = server === undefined ? this.#split(tool) : [server]
    if (given !== undefined && this.hasConfigured) this.checkServer(given)
  }

  /**
   * The tools of `server`. Throws if it cannot be asked. Without `server`, the tools of all servers that can be asked;
   * `withCommands` false leaves out those that are commands.
   */
  async discover(server: string | undefined, signal: AbortSignal, withCommands = true): Promise<FoundTools> {
    if (server === BUILTIN_SERVER) return { tools: [echoTool], errors: [] }
    if (server !== undefined) return await this.#toolsOf(await this.#named(server), signal)
    const servers = [...(await this.#loaded()).values()]
      .filter(({ config }) => withCommands || config.kind !== 'stdio')
      .sort((a, b) => (a.config.name < b.config.name ? -1 : 1))
    const found = await Promise.allSettled(servers.map((each) => this.#toolsOf(each, signal)))
    if (signal.aborted) throw new McpFault('cancelled', 'ended while mcp servers were asked for their tools')
    return {
      tools: [echoTool, ...found.flatMap((each) => (each.status === 'fulfilled' ? each.value.tools : []))],
      errors: found.flatMap((each, i) =>
        each.status === 'rejected'
          ? [{ server: servers[i]!.config.name, error: messageOf(each.reason) }]
          : each.value.errors,
      ),
    }
  }

  /** Resolves with the answer of the tool. The builtin echo answers at once. Throws `McpFault`. */
  call({ server, tool, args }: ToolCall, options: GuardedCall): EchoResult | Promise<CallAnswer> {
    const [given, name] = server === undefined ? this.#split(tool) : [server, tool]
    const isBuiltin = given === BUILTIN_SERVER || (given === undefined && name === ECHO)
    if (isBuiltin ? name === ECHO || !this.hasConfigured : !this.hasConfigured) {
      options.secrets?.checkTargets([{ server: BUILTIN_SERVER }])
      return echo(given === undefined || isBuiltin ? name : `${given}/${name}`, args)
    }
    if (isBuiltin) throw new McpFault('invalid_input', `unknown tool "${name}" of mcp server builtin (available: echo)`)
    return this.#callConfigured(given, name, args, options)
  }

  async #callConfigured(
    given: string | undefined,
    name: string,
    args: unknown,
    { guard, ...options }: GuardedCall,
  ): Promise<CallAnswer> {
    const server = given === undefined ? await this.#having(name, options.signal) : await this.#named(given)
    await ensureReached(server.config, guard, options.signal)
    options.secrets?.checkTargets(targetsOf(server.config))
    const result = await server.call(name, asArguments(args), options)
    return { server: server.config.name, tool: name, ...result }
  }

  /** `files/read` is the tool `read` of the server `files`. The name of a tool may have slashes too. */
  #split(tool: string): [server: string | undefined, name: string] {
    const slash = tool.indexOf('/')
    return slash < 0 ? [undefined, tool] : [tool.slice(0, slash), tool.slice(slash + 1)]
  }

  async #named(name: string): Promise<McpServer> {
    this.checkServer(name)
    return (await this.#loaded()).get(name)!
  }

  /** The only server that has this tool. */
  async #having(tool: string, signal: AbortSignal): Promise<McpServer> {
    const { tools, errors } = await this.discover(undefined, signal)
    const owners = tools.filter(({ name }) => name === tool).map(({ server }) => server)
    if (owners.length === 1) return await this.#named(owners[0]!)
    if (owners.length > 1) {
      const names = owners.map((owner) => `${owner}/${tool}`).join(', ')
      throw new McpFault('invalid_input', `several mcp servers have a tool "${tool}": name one of ${names}`)
    }
    const unasked = errors.map(({ error }) => `; ${error}`).join('')
    throw new McpFault(
      'invalid_input',
      `unknown mcp tool "${tool}" (available: call, discover, poll and the tools of ${this.names.join(', ')})${unasked}`,
    )
  }

  async #toolsOf(server: McpServer, signal: AbortSignal): Promise<FoundTools> {
    const { tools, fault } = await server.tools(signal)
    const { name: serverName } = server.config
    return {
      tools: tools.map(({ name, description, inputSchema }) => ({
        server: serverName,
        name,
        ...(description !== undefined && { description }),
        inputSchema,
      })),
      errors: fault === undefined ? [] : [{ server: serverName, error: fault }],
    }
  }

  /** Closes all connections, and ends all local servers. Opens no further connection. */
  async close(): Promise<void> {
    this.#isClosed = true
    const servers = await this.#servers
    await Promise.all([...(servers?.values() ?? [])].map((server) => server.close()))
  }
}

/** Throws `McpFault` for a server at an address that the guard refuses. */
async function ensureReached(config: McpServerConfig, guard: AddressGuard | undefined, signal: AbortSignal) {
  if (guard === undefined || config.kind === 'stdio') return
  try {
    await guard.addressesFor(new URL(config.url), signal)
  } catch (error) {
    if (!(error instanceof AddressRefused)) throw new McpFault('external_failure', messageOf(error))
    throw new McpFault('denied', `mcp server ${config.name}: ${error.message}`)
  }
}

/** The server by its name, and by its address if it has one. */
function targetsOf(config: McpServerConfig): SecretTarget[] {
  const address = config.kind === 'http' ? secretTargetOf(new URL(config.url)) : undefined
  return [{ server: config.name }, ...(address === undefined ? [] : [address])]
}

function asArguments(args: unknown): Record<string, unknown> {
  if (args === undefined || args === null) return {}
  if (isObject(args)) return args
  throw new McpFault('invalid_input', 'parse mcp params: arguments: expected object')
}

const ECHO = 'echo'

/** The tool of the builtin server, so that calls can be tried without a configured server. */
const echoTool: NamedTool = {
  server: BUILTIN_SERVER,
  name: ECHO,
  description: 'Answers what it was called with.',
  inputSchema: { type: 'object', description: 'Whatever is to be answered.', additionalProperties: true },
}

interface EchoResult {
  readonly tool_name: string
  readonly echo: unknown
}

const echo = (toolName: string, input: unknown): EchoResult => ({ tool_name: toolName, echo: input ?? {} })

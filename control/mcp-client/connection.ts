/**
 * A connection to one server: from the handshake, in whichever era of the protocol the server speaks, to its end.
 *
 * The newer era is asked for first (`server/discover`). A server that does not know the question is of the older one
 * and gets the handshake of that (`initialize`); one that ends over the question is started once more and gets it right
 * away. A connection that is lost is never mended: whoever needs the server opens another one.
 */
import type { Client, Tool, Transport } from '@modelcontextprotocol/client'
import { VERSION } from '../../shared/version.ts'
import { isWithinDepth, MAX_JSON_DEPTH } from '../json/depth.ts'
import { BoundedFetch } from './bounded-fetch.ts'
import type { McpServerConfig } from './config.ts'
import { McpFault, namesText } from './fault.ts'
import { asFault, type FaultContext } from './fault-text.ts'
import { MAX_TOOLS } from './limits.ts'
import { loadSdk, type Sdk } from './sdk.ts'
import { StdioTransport, type StdioTransportOptions } from './stdio-transport.ts'

/** Milliseconds for a server to start and shake hands. A first `npx` may download for a while. */
export const CONNECT_TIMEOUT_MS = 60_000

/** Milliseconds after which a program that was asked for its era and is silent counts as one of the older era. */
export const PROBE_TIMEOUT_MS = 5_000

/** Milliseconds for the list of tools. */
const LIST_TIMEOUT_MS = 30_000

/** Milliseconds for telling a server that its session is over. */
const GOODBYE_MS = 1_000

/** The longest that a timer takes. How long a call may last is the business of the task. */
const NEVER_MS = 2 ** 31 - 1

export type Era = 'modern' | 'legacy'

export interface ConnectionOptions extends Omit<StdioTransportOptions, 'server'> {
  /** The generation of the protocol that the server is known to speak; undefined before the first connection. */
  readonly era: Era | undefined
  /** Ends the opening. */
  readonly signal: AbortSignal
}

/** A progress report of a server. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export interface CallOptions {
  /** Ends the call; the server is told. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
}

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
}

/** The tools of a server. */
export interface ToolList {
  /** Each by a name of its own. */
  readonly tools: readonly Tool[]
  /** A sentence on the tools that were left out. */
  readonly fault: string | undefined
}

export class McpConnection {
  readonly era: Era
  /** Resolves when it is lost or closed. */
  readonly closed: Promise<void>
  readonly #client: Client
  readonly #transport: Transport
  readonly #faults: FaultContext
  #tools: Promise<ToolList> | undefined
  /** Calls that are not answered yet. */
  #openCalls = 0
  #isRetired = false

  private constructor(client: Client, transport: Transport, faults: FaultContext) {
    this.#client = client
    this.#transport = transport
    this.#faults = faults
    this.era = client.getProtocolEra() ?? 'legacy'
    const { promise, resolve } = Promise.withResolvers<void>()
    this.closed = promise
    client.onclose = resolve
    if (client.transport === undefined) resolve() // lost already
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#tools = undefined
    })
  }

  /** Throws `McpFault`. Nothing of a server that was started is left then. */
  static async open(server: McpServerConfig, options: ConnectionOptions): Promise<McpConnection> {
    const sdk = await loadSdk()
    if (server.kind === 'http' || options.era !== undefined) return McpConnection.#open(sdk, server, options)
    try {
      return await McpConnection.#open(sdk, server, options)
    } catch (error) {
      if (!(error instanceof EndedWhileConnecting) || options.signal.aborted) throw error
      return await McpConnection.#open(sdk, server, { ...options, era: 'legacy' })
    }
  }

  static async #open(sdk: Sdk, server: McpServerConfig, options: ConnectionOptions): Promise<McpConnection> {
    const { transport, isGone, explain } = transportTo(sdk, server, options)
    const faults = { sdk, server, isGone, explain }
    const client = new sdk.Client(
      { name: 'taskmill', version: VERSION },
      {
        // This client cannot answer requests of servers, so it declares no capabilities.
        capabilities: {},
        versionNegotiation: {
          mode: 'auto',
          ...(server.kind === 'stdio' && { probe: { timeoutMs: PROBE_TIMEOUT_MS } }),
        },
      },
    )
    client.onerror = (error) => {
      if (options.log.debugging)
        options.log.debug('an MCP server or the way to it broke a rule', { server: server.name, error: String(error) })
    }
    const abandon = () => void transport.close().catch(() => {})
    const timer = setTimeout(abandon, CONNECT_TIMEOUT_MS)
    options.signal.addEventListener('abort', abandon, { once: true })
    const startedAt = performance.now()
    try {
      await client.connect(transport, {
        timeout: CONNECT_TIMEOUT_MS,
        ...(options.era === 'legacy' && { prior: { kind: 'legacy' as const } }),
      })
      return new McpConnection(client, transport, faults)
    } catch (error) {
      // Over an answer that it does not like the SDK ends the server.
      const wasGone = isGone() && !(error instanceof sdk.ProtocolError)
      await transport.close().catch(() => {})
      if (performance.now() - startedAt >= CONNECT_TIMEOUT_MS) {
        const detail = explain()
        throw new McpFault(
          'external_failure',
          `mcp server ${server.name} was not ready within ${CONNECT_TIMEOUT_MS}ms${detail && `: ${detail}`}`,
        )
      }
      const fault = asFault(error, { ...faults, isGone: () => wasGone })
      throw wasGone && options.era === undefined ? new EndedWhileConnecting(fault.code, fault.message) : fault
    } finally {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', abandon)
    }
  }

  /** The tools that the server offers, as it told last. Throws `McpFault`. */
  tools(): Promise<ToolList> {
    if (this.#tools === undefined) {
      const listing = this.#listTools()
      this.#tools = listing
      listing.catch(() => {
        if (this.#tools === listing) this.#tools = undefined
      })
    }
    return this.#tools
  }

  /** Has the server asked again the next time. */
  forgetTools(): void {
    this.#tools = undefined
  }

  async #listTools(): Promise<ToolList> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return { tools: [], fault: undefined }
    try {
      const { tools } = await this.#client.listTools(undefined, { timeout: LIST_TIMEOUT_MS, cacheMode: 'refresh' })
      return usable(tools.slice(0, MAX_TOOLS), this.#faults.server.name)
    } catch (error) {
      throw asFault(error, this.#faults)
    }
  }

  /** Resolves with the answer of the tool, which may be a failure. Throws `McpFault`. */
  async call(tool: string, args: Record<string, unknown>, { signal, onProgress }: CallOptions): Promise<ToolResult> {
    this.#openCalls++
    try {
      const { content, structuredContent, isError } = await this.#client.callTool(
        { name: tool, arguments: args },
        { signal, timeout: NEVER_MS, onprogress: onProgress },
      )
      const result = {
        content: content as ToolResult['content'],
        ...(structuredContent !== undefined && { structuredContent }),
        ...(isError !== undefined && { isError }),
      }
      if (!isWithinDepth(result)) {
        throw new McpFault('external_failure', `the result of ${tool} is nested deeper than ${MAX_JSON_DEPTH} levels`)
      }
      return result
    } catch (error) {
      throw asFault(error, this.#faults)
    } finally {
      this.#openCalls--
      if (this.#isRetired) this.retire()
    }
  }

  /** Closes it as soon as the last call of it is answered: nobody makes another one. */
  retire(): void {
    this.#isRetired = true
    if (this.#openCalls === 0) void this.close()
  }

  /** Ends it, and a server that we have started. */
  async close(): Promise<void> {
    if ('terminateSession' in this.#transport) {
      const goodbye = (this.#transport.terminateSession as () => Promise<void>)().catch(() => {})
      await Promise.race([goodbye, Bun.sleep(GOODBYE_MS)])
    }
    await this.#client.close().catch(() => {})
    await this.#transport.close().catch(() => {})
  }
}

/** Of tools with the same name, the first counts. Leaves out schemas that are too deep to be shown. */
function usable(listed: readonly Tool[], server: string): ToolList {
  const byName = new Map<string, Tool>()
  for (const tool of listed) if (!byName.has(tool.name)) byName.set(tool.name, tool)
  const all = [...byName.values()]
  const tools = all.filter((tool) => isWithinDepth(tool))
  const deep = all.filter((tool) => !tools.includes(tool)).map(({ name }) => name)
  const fault = `mcp server ${server}: tools nested deeper than ${MAX_JSON_DEPTH} levels are left out: ${namesText(deep)}`
  return { tools, fault: deep.length === 0 ? undefined : fault }
}

/** The server ended during the handshake, maybe over the question for its era. */
class EndedWhileConnecting extends McpFault {}

function transportTo(
  sdk: Sdk,
  server: McpServerConfig,
  options: ConnectionOptions,
): { transport: Transport } & Pick<FaultContext, 'isGone' | 'explain'> {
  const rules = { isRight: sdk.isJSONRPCResponse, faultCode: sdk.ProtocolErrorCode.InternalError }
  if (server.kind === 'stdio') {
    const transport = new StdioTransport({ ...options, server }, rules)
    return { transport, isGone: () => transport.isGone, explain: () => transport.explain() }
  }
  const bounded = new BoundedFetch({
    isRight: rules.isRight,
    onLost: (id, message) => transport.onmessage?.({ jsonrpc: '2.0', id, error: { code: rules.faultCode, message } }),
  })
  const transport = new sdk.StreamableHTTPClientTransport(new URL(server.url), {
    fetch: bounded.fetch,
    requestInit: { headers: { ...server.headers } },
  })
  // The client keeps handlers that are set before it connects.
  transport.onmessage = (message) => {
    if ('id' in message && !('method' in message)) bounded.answered(message.id)
  }
  // The SDK has no other sign for this.
  transport.onerror = (error) => {
    if (/^Maximum reconnection attempts/.test(error.message)) bounded.loseResumable()
  }
  return { transport, isGone: () => false, explain: () => '' }
}

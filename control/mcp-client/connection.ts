/**
 * A connection to one server, from the handshake to its end, in either era of the protocol.
 *
 * The client first asks for the newer era (`server/discover`). If the server does not know the request, it is of the
 * older era and gets the handshake of that (`initialize`). If a local server exits because of the request, it is
 * started again and gets the older handshake at once. A lost connection is not repaired: the next call opens another
 * one.
 */
import type { Client, Tool, Transport } from '@modelcontextprotocol/client'
import type { TraceHeaders } from '../../shared/logs/trace.ts'
import { VERSION } from '../../shared/process/version.ts'
import { isWithinDepth, MAX_JSON_DEPTH } from '../json/depth.ts'
import type { CarriedSecrets } from '../outbound/carried-secrets.ts'
import { BoundedFetch } from './bounded-fetch.ts'
import type { McpServerConfig } from './config.ts'
import { McpFault, namesText } from './fault.ts'
import { asFault, type FaultContext } from './fault-text.ts'
import { MAX_TOOLS } from './limits.ts'
import { loadSdk, type Sdk } from './sdk.ts'
import type { SentToServer } from './sent-to-server.ts'
import { StdioTransport, type StdioTransportOptions } from './stdio-transport.ts'

/** Milliseconds for the start and the handshake of a server. A first `npx` may download for a while. */
export const CONNECT_TIMEOUT_MS = 60_000

/** Milliseconds after which a program that does not answer the request for its era counts as one of the older era. */
export const PROBE_TIMEOUT_MS = 5_000

/** Milliseconds for the list of tools. */
const LIST_TIMEOUT_MS = 30_000

/** Milliseconds for the request that ends a session. */
const GOODBYE_MS = 1_000

/** The longest delay of a timer. The timeout of the task limits a call. */
const NEVER_MS = 2 ** 31 - 1

export type Era = 'modern' | 'legacy'

export interface ConnectionOptions extends Omit<StdioTransportOptions, 'server'> {
  /** The generation of the protocol that the server is known to speak; undefined before the first connection. */
  readonly era: Era | undefined
  /** Aborts the handshake. */
  readonly signal: AbortSignal
  /** The secrets that the server has got. */
  readonly sent: SentToServer
}

/** A progress report of a server. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

export interface CallOptions {
  /** Cancels the call. The server is told. */
  readonly signal: AbortSignal
  readonly onProgress: (progress: Progress) => void
  /** The trace that the call belongs to. The server gets it in `_meta`, over HTTP also as headers. */
  readonly trace?: () => TraceHeaders | undefined
  /** What the arguments carry. */
  readonly secrets?: CarriedSecrets | undefined
}

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[]
  readonly structuredContent?: unknown
  readonly isError?: boolean
}

/** The tools of a server. */
export interface ToolList {
  /** Tools with unique names. */
  readonly tools: readonly Tool[]
  /** A sentence on the tools that were left out. */
  readonly fault: string | undefined
}

export class McpConnection {
  readonly era: Era
  /** Resolves when the connection is lost or closed. */
  readonly closed: Promise<void>
  readonly #client: Client
  readonly #transport: Transport
  readonly #faults: FaultContext
  #tools: Promise<ToolList> | undefined
  /** Number of open calls. */
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
    if (client.transport === undefined) resolve() // the connection is already lost
    client.setNotificationHandler('notifications/tools/list_changed', () => {
      this.#tools = undefined
    })
  }

  /** Throws `McpFault`, after the processes of a started server have ended. */
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
        options.log.debug('an MCP server or the way to it broke a rule', {
          server: server.name,
          error: options.sent.masked(String(error)),
        })
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
      // The SDK ends the server after an answer that it does not accept.
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

  /** The last known tools of the server. Throws `McpFault`. */
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

  /** Forgets the tools, so that the next call asks the server. */
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
  async call(
    tool: string,
    args: Record<string, unknown>,
    { signal, onProgress, trace }: CallOptions,
  ): Promise<ToolResult> {
    this.#openCalls++
    const meta = trace?.()
    try {
      const { content, structuredContent, isError } = await this.#client.callTool(
        { name: tool, arguments: args, ...(meta && { _meta: { ...meta } }) },
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

  /** Closes the connection once its last call is answered. No further call uses it. */
  retire(): void {
    this.#isRetired = true
    if (this.#openCalls === 0) void this.close()
  }

  /** Closes the connection, and ends a local server. */
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

/** Whether the server exited during the handshake, maybe because of the request for its era. */
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
  // The SDK reports this only by its message.
  transport.onerror = (error) => {
    if (/^Maximum reconnection attempts/.test(error.message)) bounded.loseResumable()
  }
  return { transport, isGone: () => false, explain: () => '' }
}

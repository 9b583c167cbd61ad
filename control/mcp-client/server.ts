/**
 * One configured server. The connection is opened on first use, and again on the next use after it was lost.
 *
 * Calls share the connection. If a caller runs out of time, it leaves, and the handshake continues for the others. If
 * the connection is lost, its calls fail and are not repeated here: the retries of the task decide about another
 * attempt.
 */
import type { Tool } from '@modelcontextprotocol/client'
import { messageOf } from '../../shared/contract/errors.ts'
import { unlessAborted } from '../../shared/process/unless-aborted.ts'
import type { McpServerConfig } from './config.ts'
import {
  type CallOptions,
  type ConnectionOptions,
  type Era,
  McpConnection,
  type ToolList,
  type ToolResult,
} from './connection.ts'
import { McpFault, namesText } from './fault.ts'
import { SentToServer } from './sent-to-server.ts'

export type ServerOptions = Omit<ConnectionOptions, 'era' | 'signal' | 'sent'>

export class McpServer {
  readonly config: McpServerConfig
  readonly #options: ServerOptions
  readonly #stopping = new AbortController()
  readonly #sent = new SentToServer()
  #connection: Promise<McpConnection> | undefined
  /** The open connection. */
  #opened: McpConnection | undefined
  /** The era that the first connection found. Later connections do not ask again. */
  #era: Era | undefined

  constructor(config: McpServerConfig, options: ServerOptions) {
    this.config = config
    this.#options = options
  }

  /** Throws `McpFault`, with `cancelled` if `signal` fires. */
  async tools(signal: AbortSignal): Promise<ToolList> {
    return await this.#with(signal, (connection) => unlessAborted(connection.tools(), signal, callerLeftError))
  }

  /** Throws `McpFault`. The report of a tool about its own failure is a result. */
  async call(tool: string, args: Record<string, unknown>, options: CallOptions): Promise<ToolResult> {
    if (options.secrets !== undefined) this.#sent.add(options.secrets)
    return await this.#with(options.signal, async (connection) => {
      await unlessAborted(this.#checkTool(connection, tool), options.signal, callerLeftError)
      return await connection.call(tool, args, options)
    })
  }

  /** Runs `work` with the connection. Repeats it with a new one if the server had lost the session and did nothing. */
  async #with<T>(signal: AbortSignal, work: (connection: McpConnection) => Promise<T>): Promise<T> {
    try {
      return await this.#withConnection(signal, work)
    } catch (error) {
      const message = this.#sent.masked(messageOf(error))
      throw error instanceof McpFault && message !== error.message ? new McpFault(error.code, message) : error
    }
  }

  async #withConnection<T>(signal: AbortSignal, work: (connection: McpConnection) => Promise<T>): Promise<T> {
    const connection = await unlessAborted(this.#connected(), signal, callerLeftError)
    try {
      return await work(connection)
    } catch (error) {
      if (!(error instanceof McpFault) || error.lost === undefined) throw error
      this.#abandon(connection)
      if (error.lost === 'unknown') throw error
    }
    return await work(await unlessAborted(this.#connected(), signal, callerLeftError))
  }

  async #checkTool(connection: McpConnection, tool: string): Promise<void> {
    const isTool = ({ name }: Tool) => name === tool
    if ((await connection.tools()).tools.some(isTool)) return
    connection.forgetTools() // the server may have added the tool since
    const { tools, fault } = await connection.tools()
    if (tools.some(isTool)) return
    const available = namesText(tools.map(({ name }) => name)) || 'none'
    throw new McpFault(
      'invalid_input',
      `unknown tool "${tool}" of mcp server ${this.config.name} (available: ${available})${fault === undefined ? '' : `; ${fault}`}`,
    )
  }

  #connected(): Promise<McpConnection> {
    if (this.#stopping.signal.aborted) {
      return Promise.reject(new McpFault('cancelled', `mcp server ${this.config.name}: the service is stopping`))
    }
    if (this.#connection === undefined) {
      const opening = this.#open()
      this.#connection = opening
      opening.then(
        (connection) => {
          this.#opened = connection
          connection.closed.then(() => this.#abandon(connection))
        },
        () => {
          this.#connection = undefined
          this.#era = undefined // the program may have been replaced
        },
      )
    }
    return this.#connection
  }

  async #open(): Promise<McpConnection> {
    const { log } = this.#options
    const startedAt = performance.now()
    const connection = await McpConnection.open(this.config, {
      ...this.#options,
      era: this.#era === 'legacy' ? 'legacy' : undefined,
      signal: this.#stopping.signal,
      sent: this.#sent,
    })
    this.#era = connection.era
    const { name, kind } = this.config
    const tookMs = Math.round(performance.now() - startedAt)
    log.info('connected to an MCP server', { server: name, transport: kind, era: connection.era, took_ms: tookMs })
    return connection
  }

  /** Retires this connection: later calls get another one. */
  #abandon(connection: McpConnection): void {
    connection.retire()
    if (this.#opened !== connection) return
    this.#opened = undefined
    this.#connection = undefined
    if (!this.#stopping.signal.aborted) this.#options.log.info('an MCP server is gone', { server: this.config.name })
  }

  /** Closes the connection, and ends a local server. Opens no further connection. */
  async close(): Promise<void> {
    this.#stopping.abort()
    const connection = await this.#connection?.catch(() => undefined)
    await connection?.close()
  }
}

/** The error for a caller that ran out of time. The operation continues for others. */
const callerLeftError = () => new McpFault('cancelled', 'ended while an mcp server was waited for')

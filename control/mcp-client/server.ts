/**
 * One configured server: connected to when it is first needed, again when it is needed after it was lost.
 *
 * Calls share the connection. A caller that has no more time leaves; the opening goes on for the others. What a lost
 * connection may have done is not done again: its calls fail, and whether there is another attempt is said by the task.
 */
import type { Tool } from '@modelcontextprotocol/client'
import { unlessAborted } from '../../shared/unless-aborted.ts'
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

export type ServerOptions = Omit<ConnectionOptions, 'era' | 'signal'>

export class McpServer {
  readonly config: McpServerConfig
  readonly #options: ServerOptions
  readonly #stopping = new AbortController()
  #connection: Promise<McpConnection> | undefined
  /** The same, once it is there. */
  #opened: McpConnection | undefined
  /** Found out by the first connection, so that no later one asks again. */
  #era: Era | undefined

  constructor(config: McpServerConfig, options: ServerOptions) {
    this.config = config
    this.#options = options
  }

  /** Throws `McpFault`, `cancelled` when `signal` fires. */
  async tools(signal: AbortSignal): Promise<ToolList> {
    return await this.#with(signal, (connection) => unlessAborted(connection.tools(), signal, callerLeftError))
  }

  /** Throws `McpFault`; what a tool says about its own failure is a result. */
  async call(tool: string, args: Record<string, unknown>, options: CallOptions): Promise<ToolResult> {
    return await this.#with(options.signal, async (connection) => {
      await unlessAborted(this.#checkTool(connection, tool), options.signal, callerLeftError)
      return await connection.call(tool, args, options)
    })
  }

  /** Does `work` on the connection; on another one if the server had forgotten this one and has done nothing. */
  async #with<T>(signal: AbortSignal, work: (connection: McpConnection) => Promise<T>): Promise<T> {
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
    connection.forgetTools() // it may have come since
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
          this.#era = undefined // it may be another program by now
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

  /** Ends the connection, and the server if we have started it. Nothing is opened any more. */
  async close(): Promise<void> {
    this.#stopping.abort()
    const connection = await this.#connection?.catch(() => undefined)
    await connection?.close()
  }
}

/** For a caller that has no more time; what it waited for goes on, for others. */
const callerLeftError = () => new McpFault('cancelled', 'ended while an mcp server was waited for')

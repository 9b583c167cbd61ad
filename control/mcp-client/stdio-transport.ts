/**
 * The transport to a local server: its standard input and output, with one JSON-RPC message per line.
 *
 * The transport of the SDK starts the program in the process group of the service, passes on the whole environment, and
 * ends only the program itself. Here the program leads its own process group, gets a minimal environment, and the whole
 * group is ended. Output is limited: a line that is too long closes the connection, and only the end of standard error
 * is kept. Lines that are not messages are skipped, because many servers print a greeting.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import type { FileSink, Subprocess } from 'bun'
import { messageOf, systemCodeOf } from '../../shared/contract/errors.ts'
import type { Log } from '../../shared/logs/log.ts'
import { closeEnds, openPipe, streamOf } from '../../shared/process/pipe.ts'
import { endGroup, STRAY_OUTPUT_MS } from '../../shared/process/process-group.ts'
import { startBelowReserve } from '../../shared/process/process-reserve.ts'
import { nextTurn } from '../../shared/process/steps.ts'
import { LineSplitter, LineTooLong } from '../../shared/streams/line-splitter.ts'
import { isObject, jsonOrUndefined } from '../../shared/text/json.ts'
import { TextTail } from '../../shared/text/text-tail.ts'
import { answerFault, isAnswer } from './answer-fault.ts'
import type { StdioServerConfig } from './config.ts'
import { McpFault, shortened } from './fault.ts'
import { MAX_MESSAGE_BYTES } from './limits.ts'

/** Maximum bytes that wait for the program to read its standard input. With more, it counts as hung. */
export const MAX_UNSENT_BYTES = 16 * 1024 * 1024

/** The notifications of servers that this client handles. */
const WANTED_NOTIFICATIONS = new Set(['notifications/progress', 'notifications/tools/list_changed'])

export interface StdioTransportOptions {
  readonly server: StdioServerConfig
  /** The environment variables that every program gets. Configured ones are added. */
  readonly env: Readonly<Record<string, string>>
  /** The value of TASKMILL_ATTEMPT, by which a restart finds the process. */
  readonly mark: string
  /** Milliseconds between TERM and KILL. */
  readonly killGraceMs: number
  /** Called with the pid as soon as there is one. */
  readonly onStarted: (pid: number) => void
  /** Called when all processes of the group have ended. */
  readonly onEnded: (pid: number) => void
  readonly log: Log
}

/** The parts of the SDK that the transport needs. */
export interface AnswerRules {
  /** Whether the SDK accepts `value` as an answer. */
  readonly isRight: (value: unknown) => boolean
  /** The error code of the answer that replaces an invalid one. */
  readonly faultCode: number
}

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #options: StdioTransportOptions
  readonly #rules: AnswerRules
  readonly #lines = new LineSplitter(MAX_MESSAGE_BYTES)
  readonly #lastWords = new TextTail()
  #child: Subprocess<'pipe', number | 'pipe', number | 'pipe'> | undefined
  #finished: Promise<void> = Promise.resolve()
  #unsentBytes = 0
  #isClosing = false
  #ending: Promise<void> | undefined
  /** The reason why the transport ended the program. */
  #fault: string | undefined
  /** The first line that was not a message. */
  #strayLine: string | undefined

  constructor(options: StdioTransportOptions, rules: AnswerRules) {
    this.#options = options
    this.#rules = rules
  }

  /**
   * The SDK reads these two fields to detect a local program, which is of the older era if it does not answer the
   * probe.
   */
  get pid(): number | null {
    return this.#child?.pid ?? null
  }
  readonly stderr = null

  async start(): Promise<void> {
    const [out, err] = [openPipe(), openPipe()]
    try {
      this.#child = this.#spawn(out?.writeEnd ?? 'pipe', err?.writeEnd ?? 'pipe')
    } catch (error) {
      closeEnds('readEnd', [out, err])
      throw error
    } finally {
      closeEnds('writeEnd', [out, err])
    }
    const child = this.#child
    this.#options.onStarted(child.pid)
    const readers = [streamOf(out, child.stdout), streamOf(err, child.stderr)].map((stream) => stream.getReader())
    const receiving = readAll(readers[0]!, (chunk) => this.#receive(chunk)).catch((error) => this.#giveUp(error))
    // A program that has closed its standard output can no longer answer.
    void receiving.then(() => this.#endGroup())
    const hearing = readAll(readers[1]!, (chunk) => this.#lastWords.push(chunk)).catch(() => {})
    const reading = Promise.all([receiving, hearing])
    this.#finished = this.#finish(child, reading, readers).finally(() => closeEnds('readEnd', [out, err]))
  }

  #spawn(stdout: number | 'pipe', stderr: number | 'pipe') {
    const { command, args, cwd, env: own } = this.#options.server
    const env = { ...this.#options.env, ...own, TASKMILL_ATTEMPT: this.#options.mark }
    try {
      return startBelowReserve(() =>
        Bun.spawn([command, ...args], {
          ...(cwd !== undefined && { cwd }),
          env,
          detached: true,
          stdin: 'pipe',
          stdout,
          stderr,
        }),
      )
    } catch (error) {
      const code = systemCodeOf(error)
      const where = cwd === undefined ? '' : `, or no such directory ${cwd}`
      const reason = code === 'ENOENT' ? `no such program${where}` : code === 'EACCES' ? 'not executable' : undefined
      throw new McpFault('launch_failed', `cannot start ${command}: ${reason ?? messageOf(error)}`, { cause: error })
    }
  }

  /** Resolves when all processes of the group have ended and all their output was read. */
  async #finish(child: Subprocess, reading: Promise<unknown>, readers: readonly Reader[]): Promise<void> {
    await child.exited
    await this.#endGroup()
    const stopReading = setTimeout(
      () => readers.forEach((reader) => void reader.cancel().catch(() => {})),
      STRAY_OUTPUT_MS,
    )
    await reading
    clearTimeout(stopReading)
    this.#options.onEnded(child.pid)
    this.onclose?.()
  }

  async #receive(chunk: Uint8Array): Promise<void> {
    for (const line of this.#lines.push(chunk)) {
      if (line.trim() === '') continue
      const message = parseMessage(line)
      if (message === undefined) this.#noteStray(line)
      else if (message.id !== undefined) this.onmessage?.(this.#readable(message))
      else if (WANTED_NOTIFICATIONS.has(String(message.method))) {
        this.onmessage?.(message as unknown as JSONRPCMessage)
        // The SDK delivers notifications a turn later. By then, the answer in the next line would have ended the call.
        await nextTurn()
      }
    }
  }

  /** Replaces an invalid answer, which the SDK would drop, by an error. */
  #readable(message: Record<string, unknown>): JSONRPCMessage {
    const { isRight, faultCode: code } = this.#rules
    const fault = isAnswer(message) ? answerFault(message, isRight) : undefined
    if (fault === undefined) return message as unknown as JSONRPCMessage
    return { jsonrpc: '2.0', id: message.id as number, error: { code, message: fault } }
  }

  #noteStray(line: string): void {
    this.#strayLine ??= shortened(line, 200)
    const { log, server } = this.#options
    if (log.debugging)
      log.debug('an MCP server wrote a line that is no message', { server: server.name, line: shortened(line, 200) })
  }

  #giveUp(error: unknown): void {
    if (!(error instanceof LineTooLong)) this.#fault ??= messageOf(error)
    else this.#fault ??= `it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`
    this.onerror?.(error as Error)
    void this.#endGroup()
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const child = this.#child
    if (child === undefined || this.#isClosing) throw new McpFault('external_failure', 'the server has ended')
    const line = new TextEncoder().encode(`${JSON.stringify(message)}\n`)
    if (this.#unsentBytes + line.length > MAX_UNSENT_BYTES) {
      throw new McpFault(
        'external_failure',
        `the server does not read its input: ${this.#unsentBytes} bytes are waiting`,
      )
    }
    this.#unsentBytes += line.length
    const stdin: FileSink = child.stdin
    stdin.write(line)
    // The server may not read it. A broken pipe shows up as the end of the program.
    Promise.resolve(stdin.flush()).then(
      () => {
        this.#unsentBytes -= line.length
      },
      () => {},
    )
  }

  /** Ends the program and all processes that it started. */
  async close(): Promise<void> {
    await this.#endGroup()
    await this.#finished
  }

  #endGroup(): Promise<void> {
    this.#isClosing = true
    if (this.#child === undefined) return Promise.resolve()
    const { pid, stdin } = this.#child
    if (this.#ending === undefined) {
      // Does not wait: the program may never read the rest.
      Promise.resolve(stdin.end()).catch(() => {})
      this.#ending = endGroup(pid, this.#options.killGraceMs)
    }
    return this.#ending
  }

  /** Whether the connection is unusable. */
  get isGone(): boolean {
    return this.#isClosing
  }

  /** The exit status and the last output of a failed program, for error messages. */
  explain(): string {
    const parts = [this.#fault ?? this.#endingText()]
    if (this.#strayLine !== undefined) parts.push(`it wrote to its standard output: ${this.#strayLine}`)
    const words = this.#lastWords.text()
    if (words !== '') parts.push(`the end of its standard error: ${words}`)
    return parts.filter((part) => part !== '').join('; ')
  }

  #endingText(): string {
    if (this.#child === undefined) return ''
    const { exitCode, signalCode } = this.#child
    if (signalCode !== null) return `terminated by signal ${signalCode}`
    return exitCode === null ? '' : `exit status ${exitCode}`
  }
}

function parseMessage(line: string): Record<string, unknown> | undefined {
  const value = jsonOrUndefined(line)
  return isObject(value) && (value.jsonrpc === '2.0' || isAnswer(value)) ? value : undefined
}

/** The used part of a stream reader. The type in Bun has more members than the readers of its streams. */
interface Reader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(): Promise<unknown>
}

async function readAll(reader: Reader, each: (chunk: Uint8Array) => void | Promise<void>): Promise<void> {
  for (;;) {
    const { done, value } = await reader.read()
    if (done || value === undefined) return
    await each(value)
  }
}

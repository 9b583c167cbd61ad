/**
 * The way to a server that we have started: its standard input and output, a JSON-RPC message a line.
 *
 * The SDK's own transport starts the program in our process group, hands it our environment and ends it alone. Here it
 * leads a group of its own, sees only what it was given, and nothing of the group outlives it. Whatever the program
 * writes is bounded: a line that never ends costs it the connection, lines that are no messages are skipped (many a
 * server greets the world on its standard output), of its standard error only the end is kept.
 */
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import type { FileSink, Subprocess } from 'bun'
import { messageOf, systemCodeOf } from '../../shared/errors.ts'
import { isObject, jsonOrUndefined } from '../../shared/json.ts'
import { LineSplitter, LineTooLong } from '../../shared/line-splitter.ts'
import type { Log } from '../../shared/log.ts'
import { closeEnds, openPipe, streamOf } from '../../shared/pipe.ts'
import { endGroup, STRAY_OUTPUT_MS } from '../../shared/process-group.ts'
import { nextTurn } from '../../shared/steps.ts'
import { TextTail } from '../../shared/text-tail.ts'
import { answerFault, isAnswer } from './answer-fault.ts'
import type { StdioServerConfig } from './config.ts'
import { McpFault, shortened } from './fault.ts'
import { MAX_MESSAGE_BYTES } from './limits.ts'

/** Bytes that wait until the program reads its standard input. More means that it does not. */
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
  /** Called when nothing of its group is left. */
  readonly onEnded: (pid: number) => void
  readonly log: Log
}

/** The parts of the SDK that the transport needs. */
export interface AnswerRules {
  /** Whether it takes `value` for an answer. */
  readonly isRight: (value: unknown) => boolean
  /** The code of an answer that we make up for one that is wrong. */
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
  /** Why we ended it, where we did. */
  #fault: string | undefined
  /** The first line that was no message. */
  #strayLine: string | undefined

  constructor(options: StdioTransportOptions, rules: AnswerRules) {
    this.#options = options
    this.#rules = rules
  }

  /** The SDK knows by these two that it speaks to a program: one that is silent when probed is of the older era. */
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
    // A program that has closed its standard output cannot answer any more.
    void receiving.then(() => this.#endGroup())
    const hearing = readAll(readers[1]!, (chunk) => this.#lastWords.push(chunk)).catch(() => {})
    const reading = Promise.all([receiving, hearing])
    this.#finished = this.#finish(child, reading, readers).finally(() => closeEnds('readEnd', [out, err]))
  }

  #spawn(stdout: number | 'pipe', stderr: number | 'pipe') {
    const { command, args, cwd, env: own } = this.#options.server
    const env = { ...this.#options.env, ...own, TASKMILL_ATTEMPT: this.#options.mark }
    try {
      return Bun.spawn([command, ...args], {
        ...(cwd !== undefined && { cwd }),
        env,
        detached: true,
        stdin: 'pipe',
        stdout,
        stderr,
      })
    } catch (error) {
      const code = systemCodeOf(error)
      const where = cwd === undefined ? '' : `, or no such directory ${cwd}`
      const reason = code === 'ENOENT' ? `no such program${where}` : code === 'EACCES' ? 'not executable' : undefined
      throw new McpFault('launch_failed', `cannot start ${command}: ${reason ?? messageOf(error)}`, { cause: error })
    }
  }

  /** Resolves when nothing of the group is left and all that it said was heard. */
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
        // The SDK hands notifications on a turn later. By then the answer in the next line would have ended the call.
        await nextTurn()
      }
    }
  }

  /** A wrong answer, which nobody would be told of, becomes an error that says so. */
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
    // Whether it is read is the server's business; a broken pipe shows as its end.
    Promise.resolve(stdin.flush()).then(
      () => {
        this.#unsentBytes -= line.length
      },
      () => {},
    )
  }

  /** Ends the program and all that it started. */
  async close(): Promise<void> {
    await this.#endGroup()
    await this.#finished
  }

  #endGroup(): Promise<void> {
    this.#isClosing = true
    if (this.#child === undefined) return Promise.resolve()
    const { pid, stdin } = this.#child
    if (this.#ending === undefined) {
      // Not waited for: it lasts until all is read, and this may be a program that reads nothing.
      Promise.resolve(stdin.end()).catch(() => {})
      this.#ending = endGroup(pid, this.#options.killGraceMs)
    }
    return this.#ending
  }

  /** Whether it cannot be spoken to any more. */
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

/** As much of it as is used here: Bun's own type of it has more than those of its streams. */
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

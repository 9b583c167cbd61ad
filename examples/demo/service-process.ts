/** A service of the demo as a process, from the first line of its log to its end. */
import type { Subprocess } from 'bun'
import { childEnvironment } from './environment.ts'

/** Milliseconds for a service to listen, and later to end; it takes a few hundredths of that. */
const PATIENCE_MS = 10_000

/** Lines of its log that a failure of the demo shows. */
const LOG_TAIL_LINES = 15

export interface ServiceOptions {
  /** What people call it: `control service`. */
  readonly name: string
  readonly command: readonly string[]
  readonly cwd: string
}

export class ServiceProcess implements AsyncDisposable {
  readonly name: string
  readonly url: string
  readonly #process: Subprocess<'ignore', 'pipe', 'pipe'>
  readonly #log: readonly string[]

  private constructor(
    name: string,
    process: Subprocess<'ignore', 'pipe', 'pipe'>,
    log: readonly string[],
    url: string,
  ) {
    this.name = name
    this.#process = process
    this.#log = log
    this.url = url
  }

  /** Starts it and waits until it listens. Throws with what it said. */
  static async start({ name, command, cwd }: ServiceOptions, signal?: AbortSignal): Promise<ServiceProcess> {
    signal?.throwIfAborted()
    const child = Bun.spawn([...command], {
      cwd,
      env: childEnvironment(),
      // Ctrl-C is for the demo alone, which ends everything in order.
      detached: true,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const log: string[] = []
    const { promise: listening, resolve, reject } = Promise.withResolvers<string>()
    const outputs = [
      forEachLine(child.stdout, (line) => {
        log.push(line)
        const url = listeningUrl(line)
        if (url !== undefined) resolve(url)
      }),
      forEachLine(child.stderr, (line) => log.push(line)),
    ]
    const fail = (what: string) => reject(new Error(`the ${name} ${what}\n${log.join('\n')}`))
    Promise.all([child.exited, ...outputs]).then(([code]) => fail(`ended at its start (exit code ${code})`))
    const timer = setTimeout(() => fail(`did not listen within ${PATIENCE_MS} ms`), PATIENCE_MS)
    const interrupted = () => reject(signal?.reason)
    signal?.addEventListener('abort', interrupted)
    try {
      return new ServiceProcess(name, child, log, await listening)
    } catch (error) {
      child.kill('SIGKILL')
      await child.exited
      throw error
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', interrupted)
    }
  }

  /** The last lines that it has written. */
  get logTail(): string {
    return this.#log.slice(-LOG_TAIL_LINES).join('\n')
  }

  get hasEnded(): boolean {
    return this.#ending !== undefined
  }

  /** A request to it, as JSON. Throws when it does not answer well, and says so when it has ended by itself. */
  async ask(path: string, init: RequestInit = {}): Promise<unknown> {
    try {
      const response = await fetch(`${this.url}${path}`, init)
      if (!response.ok)
        throw new Error(`${init.method ?? 'GET'} ${path} of the ${this.name} answered ${response.status}`)
      return await response.json()
    } catch (error) {
      this.throwIfEnded(error)
      throw error
    }
  }

  throwIfEnded(cause?: unknown): void {
    if (this.hasEnded) throw new Error(`the ${this.name} ended by itself (${this.#ending})`, { cause })
  }

  /** SIGTERM, and what `exit 0` would be wrong about. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    const ending = await this.#endingWithin(PATIENCE_MS)
    if (ending === undefined) {
      this.#process.kill('SIGKILL')
      await this.#process.exited
      throw new Error(`the ${this.name} did not end within ${PATIENCE_MS} ms of SIGTERM`)
    }
    if (ending !== 0) throw new Error(`the ${this.name} ended with ${ending} instead of 0`)
  }

  /** Ends what `stop` did not end, as after a failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGTERM')
    if ((await this.#endingWithin(PATIENCE_MS)) === undefined) this.#process.kill('SIGKILL')
    await this.#process.exited
  }

  /** Its exit code, or the signal that ended it. */
  get #ending(): number | string | undefined {
    return this.#process.signalCode ?? this.#process.exitCode ?? undefined
  }

  async #endingWithin(ms: number): Promise<number | string | undefined> {
    const { promise: late, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, ms)
    await Promise.race([this.#process.exited, late])
    clearTimeout(timer)
    return this.#ending
  }
}

function listeningUrl(line: string): string | undefined {
  try {
    const { msg, url } = JSON.parse(line) as { msg?: unknown; url?: unknown }
    return msg === 'listening' && typeof url === 'string' ? url : undefined
  } catch {
    return undefined // whatever it is, it is in the log
  }
}

async function forEachLine(stream: ReadableStream<Uint8Array>, each: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) each(line)
  }
  if (rest !== '') each(rest)
}

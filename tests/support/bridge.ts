/** `taskmill mcp` under test: the test writes lines to its input and reads lines from its output. */
import type { Subprocess } from 'bun'
import { builtProgram } from '../../scripts/build.ts'
import { testEnvironment } from './service.ts'
import { until } from './until.ts'

interface BridgeMessage {
  readonly id?: string | number | null
  readonly method?: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it as they expect it
  readonly result?: any
  readonly error?: { readonly code: number; readonly message: string }
}

export class BridgeUnderTest implements AsyncDisposable {
  /** What was printed so far; grows. */
  readonly printed: BridgeMessage[] = []
  readonly stderr: Promise<string>
  readonly process: Subprocess<'pipe', 'pipe', 'pipe'>
  /** Resolves with the last line if it has no end. */
  readonly #reading: Promise<string>

  constructor(process: Subprocess<'pipe', 'pipe', 'pipe'>) {
    this.process = process
    this.stderr = new Response(process.stderr).text()
    this.#reading = this.#read()
  }

  async #read(): Promise<string> {
    let rest = ''
    for await (const chunk of this.process.stdout) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n')
      rest = lines.pop()!
      for (const line of lines) this.printed.push(JSON.parse(line))
    }
    return rest
  }

  write(text: string): void {
    this.process.stdin.write(text)
    this.process.stdin.flush()
  }

  send(message: object): void {
    this.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }

  /** The answer to `id`, once it is there. */
  answer(id: string | number | null): Promise<BridgeMessage> {
    return until(() =>
      this.printed.find((message) => message.id === id && message.method === undefined),
    ) as Promise<BridgeMessage>
  }

  request(message: { id: string | number; method: string; params?: object }): Promise<BridgeMessage> {
    this.send(message)
    return this.answer(message.id)
  }

  call(id: string | number, name: string, args: object, meta?: object): Promise<BridgeMessage> {
    const params = { name, arguments: args, ...(meta !== undefined && { _meta: meta }) }
    return this.request({ id, method: 'tools/call', params })
  }

  /** Ends its input and gives its exit code, once all that it printed is read. */
  async end(): Promise<number> {
    this.process.stdin.end()
    const exitCode = await this.process.exited
    await this.#assertWhole()
    return exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const isOver = this.process.exitCode !== null
    this.process.kill('SIGKILL')
    await Promise.all([this.process.exited, this.#reading])
    if (isOver) await this.#assertWhole() // else the kill may have cut a line
  }

  async #assertWhole(): Promise<void> {
    const rest = await this.#reading
    if (rest !== '') throw new Error(`half a line: ${rest}`)
  }
}

export async function startBridge(url: string, env: Readonly<Record<string, string>> = {}): Promise<BridgeUnderTest> {
  const options = {
    env: testEnvironment({ SERVICE_URL: url, ...env }),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  } as const
  return new BridgeUnderTest(Bun.spawn([await builtProgram('taskmill'), 'mcp'], options))
}

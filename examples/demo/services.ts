/** The executables of the demo: a control service of its own, and the client. */
import type { Subprocess } from 'bun'
import type { SubmitResponse, TaskRecord } from '../../shared/contract/control.ts'
import { bypassProxyForLoopback } from '../../shared/proxy.ts'

/** Milliseconds for control to listen, and later to end; it takes a few hundredths of that. */
const CONTROL_PATIENCE_MS = 10_000

/** Lines of control's log that a failure of the demo shows. */
const LOG_TAIL_LINES = 15

/** Our environment without the settings of taskmill in it: the demo is the same everywhere. */
export function childEnvironment(): Record<string, string> {
  const env: Record<string, string | undefined> = { ...process.env }
  for (const name of Object.keys(env)) if (name.startsWith('SERVICE_')) delete env[name]
  env.LANG = 'C.UTF-8' // sort and uniq go by it
  bypassProxyForLoopback(env)
  return env as Record<string, string>
}

type ControlProcess = Subprocess<'ignore', 'pipe', 'pipe'>

export class Control implements AsyncDisposable {
  readonly #process: ControlProcess
  readonly #log: readonly string[]
  readonly url: string

  constructor(process: ControlProcess, log: readonly string[], url: string) {
    this.#process = process
    this.#log = log
    this.url = url
  }

  /** The last lines that control has written. */
  get logTail(): string {
    return this.#log.slice(-LOG_TAIL_LINES).join('\n')
  }

  async tasks(signal: AbortSignal): Promise<TaskRecord[]> {
    try {
      const response = await fetch(`${this.url}/tasks`, { signal })
      if (!response.ok) throw new Error(`GET /tasks answered ${response.status}`)
      return (await response.json()) as TaskRecord[]
    } catch (error) {
      const ending = this.#process.exitCode ?? this.#process.signalCode
      if (ending !== null) throw new Error(`the control service ended by itself (${ending})`, { cause: error })
      throw error
    }
  }

  /** SIGTERM, and what `exit 0` would be wrong about. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    const ending = await endingWithin(this.#process, CONTROL_PATIENCE_MS)
    if (ending === undefined) {
      this.#process.kill('SIGKILL')
      await this.#process.exited
      throw new Error(`the control service did not end within ${CONTROL_PATIENCE_MS} ms of SIGTERM`)
    }
    if (ending !== 0) throw new Error(`the control service ended with ${ending} instead of 0`)
  }

  /** Ends what `stop` did not end, as after a failure. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGTERM')
    if ((await endingWithin(this.#process, CONTROL_PATIENCE_MS)) === undefined) this.#process.kill('SIGKILL')
    await this.#process.exited
  }
}

async function endingWithin(process: ControlProcess, ms: number): Promise<number | string | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  await Promise.race([process.exited, late])
  clearTimeout(timer)
  return process.signalCode ?? process.exitCode ?? undefined
}

/** Starts control on a free port, with `work` as the place that tasks may write to. Throws with what it said. */
export async function startControl(
  executable: string,
  { work, data }: { readonly work: string; readonly data: string },
  signal: AbortSignal,
): Promise<Control> {
  signal.throwIfAborted()
  const flags = ['--addr', '127.0.0.1:0', '--data-dir', data, '--file-root', work]
  const patience = ['--shutdown-timeout', '500ms', '--kill-grace', '500ms']
  const child = Bun.spawn([executable, ...flags, ...patience], {
    cwd: work,
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
  const fail = (what: string) => reject(new Error(`the control service ${what}\n${log.join('\n')}`))
  Promise.all([child.exited, ...outputs]).then(([code]) => fail(`ended at its start (exit code ${code})`))
  const timer = setTimeout(() => fail(`did not listen within ${CONTROL_PATIENCE_MS} ms`), CONTROL_PATIENCE_MS)
  const interrupted = () => reject(signal.reason)
  signal.addEventListener('abort', interrupted)
  try {
    return new Control(child, log, await listening)
  } catch (error) {
    child.kill('SIGKILL')
    await child.exited
    throw error
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', interrupted)
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

/** The client `taskmill`. Each call is one run of the executable, which prints one JSON object. */
export class Client {
  readonly #executable: string
  readonly #env: Record<string, string>

  constructor(executable: string, serviceUrl: string) {
    this.#executable = executable
    this.#env = { ...childEnvironment(), SERVICE_URL: serviceUrl }
  }

  submit(file: string, signal: AbortSignal): Promise<SubmitResponse> {
    return this.#run(['submit', '--file', file], signal) as Promise<SubmitResponse>
  }

  /** Resolves when all have ended; throws when they have not within two minutes. */
  async wait(ids: readonly string[], signal: AbortSignal): Promise<void> {
    await this.#run(['wait', ...ids, '--timeout', '2m'], signal)
  }

  async #run(args: readonly [name: string, ...rest: string[]], signal: AbortSignal): Promise<unknown> {
    signal.throwIfAborted()
    const child = Bun.spawn([this.#executable, ...args], {
      env: this.#env,
      signal,
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    const exitCode = await child.exited
    signal.throwIfAborted()
    if (exitCode !== 0) throw new Error(`taskmill ${args[0]} ended with exit code ${exitCode}: ${stdout}${stderr}`)
    return (JSON.parse(stdout) as { data: unknown }).data
  }
}

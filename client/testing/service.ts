/** A service as a process of a test: started, with the lines that it logs. */
import type { Subprocess } from 'bun'

/** Log lines that are kept: the last ones. */
const MAX_LOG_LINES = 10_000

/** Lines of the log in the error of a service that did not start. */
const TOLD_LINES = 20

/** Characters of standard error that are kept: the last ones. */
const MAX_STDERR_CHARACTERS = 64 * 1024

export type LogLine = Readonly<Record<string, unknown>>

export interface ServiceCommand {
  readonly name: 'control' | 'runtime'
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Gets the lines, the newest last. */
  readonly log: LogLine[]
  readonly startWithinMs: number
}

export interface TestService {
  readonly url: string
  readonly process: Subprocess<'ignore', 'pipe', 'pipe'>
}

/** Resolves once the service listens. Throws with its own words if it does not. */
export async function startService(asked: ServiceCommand): Promise<TestService> {
  const { name, command, cwd, env, log, startWithinMs } = asked
  const child = Bun.spawn([...command], { cwd, env: { ...env }, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  child.unref()
  const { promise: listening, resolve } = Promise.withResolvers<string>()
  let timer: Timer | undefined
  const tooLong = new Promise<undefined>((late) => {
    timer = setTimeout(late, startWithinMs)
  })
  const reading = eachLine(child.stdout, (text) => {
    const line = parsed(text)
    if (log.push(line) > MAX_LOG_LINES) log.shift()
    if (line.msg === 'listening' && line.service === name) resolve(String(line.url))
  })
  let stderr = ''
  const complaining = eachLine(child.stderr, (text) => {
    stderr = `${stderr}${text}\n`.slice(-MAX_STDERR_CHARACTERS)
  })
  const url = await Promise.race([listening, child.exited.then(() => undefined), tooLong])
  clearTimeout(timer)
  if (url !== undefined) return { url, process: child }
  const isLate = child.exitCode === null && child.signalCode === null
  child.kill('SIGKILL')
  await Promise.all([child.exited, reading, complaining])
  const why = isLate
    ? `it did not listen within ${startWithinMs} ms`
    : `it ended with ${child.signalCode ?? child.exitCode}`
  const words = [...log.slice(-TOLD_LINES).map((line) => JSON.stringify(line)), stderr.trim()]
  throw new Error(`cannot start ${command[0]}: ${why}\n${words.join('\n')}`)
}

function parsed(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine
  } catch {
    return { msg: text }
  }
}

/** Calls `each` for every line of a stream, to its end. */
async function eachLine(stream: ReadableStream<Uint8Array>, each: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    for (const line of lines) each(line)
  }
}

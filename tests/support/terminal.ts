/** The client in a pseudo terminal, as a person starts it. */
import { builtProgram as binary } from '../../scripts/build.ts'
import { testEnvironment } from './service.ts'

interface TerminalRun {
  /** All that the terminal got so far. */
  output(): string
  type(text: string): void
  readonly exited: Promise<number>
}

interface TerminalOptions {
  readonly url: string
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly columns?: number
  readonly rows?: number
}

/** Standard input, output and error are the terminal. */
export async function startInTerminal(args: readonly string[], options: TerminalOptions): Promise<TerminalRun> {
  const { url, env = {}, cwd, columns = 100, rows = 30 } = options
  const decoder = new TextDecoder()
  let output = ''
  const child = Bun.spawn([await binary('taskmill'), ...args], {
    env: testEnvironment({ SERVICE_URL: url, TERM: 'xterm-256color', ...env }),
    ...(cwd !== undefined && { cwd }),
    terminal: {
      cols: columns,
      rows,
      data(_, bytes) {
        output += decoder.decode(bytes, { stream: true })
      },
    },
  })
  const exited = child.exited.finally(() => child.terminal?.close())
  return { output: () => output, type: (text) => void child.terminal?.write(text), exited }
}

/** What the terminal got from a run, with plain line ends, and the exit code. */
export async function runInTerminal(
  args: readonly string[],
  options: TerminalOptions,
): Promise<{ readonly exitCode: number; readonly output: string }> {
  const run = await startInTerminal(args, options)
  const exitCode = await run.exited
  return { exitCode, output: run.output().replaceAll('\r\n', '\n') }
}

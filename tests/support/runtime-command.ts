/** Runs a command of the runtime executable to its end. */
import { builtProgram } from '../../scripts/build.ts'
import { testEnvironment } from './service.ts'

export interface Run {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly cwd?: string
  readonly stdin?: string
  /** Runs it through this command: on another host, as another user. */
  readonly through?: readonly string[]
}

/** `taskmill-runtime` with exactly these arguments, in an environment that is ours alone. */
export async function runRuntime(
  args: readonly string[],
  { env = {}, cwd = '/', stdin, through = [] }: RunOptions = {},
): Promise<Run> {
  const child = Bun.spawn([...through, await builtProgram('taskmill-runtime'), ...args], {
    cwd,
    env: testEnvironment(env),
    stdin: stdin === undefined ? 'ignore' : new TextEncoder().encode(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  return { exitCode: await child.exited, stdout, stderr }
}

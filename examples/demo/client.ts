/** Calls the client `taskmill`. Each call runs the executable once, which prints one JSON object. */
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { childEnvironment } from './environment.ts'

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

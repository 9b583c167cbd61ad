/** Runs the real client once. */

import { builtProgram as binary } from '../../scripts/build.ts'
import { testEnvironment } from './service.ts'

export interface ClientRun {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
  /** What was printed, parsed: it must be exactly one JSON object and a line end. */
  readonly envelope: {
    ok: boolean
    data?: Record<string, unknown>
    error?: { message: string; status_code: number; body: string }
  }
}

export interface ClientOptions {
  /** SERVICE_URL. */
  readonly url?: string
  readonly env?: Readonly<Record<string, string>>
  /** Default: empty. */
  readonly stdin?: string | undefined
  readonly cwd?: string
}

export async function runClient(args: readonly string[], options: ClientOptions = {}): Promise<ClientRun> {
  const env = testEnvironment({
    ...noOwnServices(options.env),
    ...(options.url !== undefined && { SERVICE_URL: options.url }),
    ...options.env,
  })
  const child = Bun.spawn([await binary('taskmill'), ...args], {
    env,
    ...(options.cwd !== undefined && { cwd: options.cwd }),
    stdin: new TextEncoder().encode(options.stdin ?? ''),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
  const exitCode = await child.exited
  const isOneObject = /^\{.*\}\n$/.test(stdout)
  return { exitCode, stdout, stderr, envelope: isOneObject ? JSON.parse(stdout) : { ok: false } }
}

/** Without a HOME of the test the client would find the services that the user of this machine started. */
const noOwnServices = (env: Readonly<Record<string, string>> = {}): Record<string, string> =>
  'HOME' in env ? {} : { XDG_STATE_HOME: '/nonexistent' }

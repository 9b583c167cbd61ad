/** Runs one of our executables to its end. */
import { messageOf } from '../../shared/contract/errors.ts'

/** Milliseconds for `doctor` of the runtime service, which tries a sandbox. Others take some hundredths of that. */
const LIMIT_MS = 60_000

export type Ran =
  | { readonly exitCode: number; readonly stdout: string; readonly stderr: string }
  | { readonly fault: string }

export async function runProgram(
  command: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Promise<Ran> {
  try {
    const child = Bun.spawn([...command], {
      env: { ...env },
      ...{ stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' },
      timeout: LIMIT_MS,
    })
    const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()])
    await child.exited
    if (child.exitCode !== null) return { exitCode: child.exitCode, stdout: stdout.trim(), stderr: stderr.trim() }
    return { fault: `it was ended by ${child.signalCode}` }
  } catch (error) {
    return { fault: messageOf(error) }
  }
}

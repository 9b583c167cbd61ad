/** Another sandbox of the service, for attempts on it. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { LauncherProgram } from '../launch/embedded.ts'
import { runInSandbox, type ThrowAwayOptions } from '../launch/throw-away.ts'
import { PROGRAM, putEscapeProgram } from './program.ts'

/** The sandbox could not be made: nothing was tried. */
export class NoSandbox extends Error {
  override readonly name = 'NoSandbox'
}

/** Milliseconds between two looks at whether it runs. */
const LOOK_MS = 10

/** Waits in its sandbox until it is disposed of. `pid` is that of the host: the sandbox has no pid namespace of its own. */
export async function startNeighbour(
  launcher: LauncherProgram,
  options: Pick<ThrowAwayOptions, 'sandbox' | 'wallTimeMs' | 'signal'>,
): Promise<AsyncDisposable & { readonly pid: number }> {
  const end = new AbortController()
  const { signal = end.signal } = options
  let output = ''
  const ended = runInSandbox(launcher, {
    ...options,
    command: [`./${PROGRAM}`, '--be-neighbour'],
    signal: AbortSignal.any([signal, end.signal]),
    prepare: ({ workspace, taskDir }) => {
      putEscapeProgram(join(workspace, PROGRAM))
      output = join(taskDir, 'stdout.log')
    },
  })
  for (;;) {
    const [pid, rest] = (existsSync(output) ? readFileSync(output, 'utf8') : '').split('\n')
    if (rest !== undefined) {
      const dispose = async () => {
        end.abort()
        await ended.catch(() => {}) // it throws the reason of the abort
      }
      return { pid: Number(pid), [Symbol.asyncDispose]: dispose }
    }
    const early = await Promise.race([ended, Bun.sleep(LOOK_MS)])
    if (early) throw new NoSandbox(`a second one ended at once: ${early.complaints.trim() || early.stderr.trim()}`)
  }
}

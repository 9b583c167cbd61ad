/**
 * The services in the foreground of a terminal (`taskmill up --foreground`).
 *
 * Their log goes to standard error. Ctrl-C reaches only the client, because the services lead a session of their own; the
 * client passes it on. So they end in their order, and a second Ctrl-C has its meaning, too.
 */
import { signalIf } from '../../shared/process/pidfd.ts'
import { isRunning, type ServicesRecord } from '../own-services/record.ts'
import type { Environment } from '../own-services/state-dir.ts'
import type { DetachedProcess } from './detached.ts'
import { endServices } from './down.ts'

/** 128 and the number of the signal, as shells have it. */
const SIGHUP_EXIT_CODE = 129

/** Descriptor of standard error. */
const STDERR = 2

export interface Foreground extends DetachedProcess {
  /** Resolves with the exit code, or the name of the signal. */
  readonly exit: Promise<number | string>
}

export function startInForeground(command: readonly string[], env: Environment): Foreground {
  const child = Bun.spawn([...command], {
    env: { ...env },
    detached: true,
    stdin: 'ignore',
    stdout: STDERR,
    stderr: STDERR,
  })
  const exit = child.exited.then((code) => child.signalCode ?? code)
  return { pid: child.pid, exit, ended: exit.then((how) => `taskmill-control ended (${how}), see above`) }
}

/**
 * Resolves when the services have ended: after Ctrl-C, or because `taskmill down` was called elsewhere. Throws if the control
 * service fails. An exit of the client before that tells it not to wait for running attempts any more.
 */
export async function stayInForeground(
  services: ServicesRecord,
  { exit }: Foreground,
  { env, interruption }: { readonly env: Environment; readonly interruption: AbortSignal },
): Promise<void> {
  const hurry = () => void signalIf(() => isRunning(services, env), services.pid, 'SIGTERM')
  // The terminal is gone. Without a handler the client would end without the signal above.
  const hangUp = () => process.exit(SIGHUP_EXIT_CODE)
  process.on('exit', hurry)
  process.on('SIGHUP', hangUp)
  const ending = aborted(interruption).then(() => endServices(services, env))
  const how = await Promise.race([exit, ending.then(() => exit)])
  process.off('exit', hurry)
  process.off('SIGHUP', hangUp)
  if (how !== 0 && !interruption.aborted) throw new Error(`taskmill-control ended (${how}), see above`)
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

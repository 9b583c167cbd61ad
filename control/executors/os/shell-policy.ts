/**
 * The programs that a shell task may start. A guard rail, not isolation: `awk` and `find` can start any program. Pure.
 */
import { ExecutionError } from '../executor.ts'

/** `allowlist` is the default; `open` is for trusted development machines only. */
export type ShellPolicy = 'allowlist' | 'open'

/** Source: spec, executor shell. */
export const ALLOWED_COMMANDS: ReadonlySet<string> = new Set([
  ...['echo', 'cat', 'ls', 'date', 'whoami', 'hostname', 'uname', 'pwd', 'curl', 'wget', 'ping', 'dig', 'grep'],
  ...['awk', 'sed', 'head', 'tail', 'wc', 'sort', 'uniq', 'find', 'dir', 'where', 'type'],
])

/** Throws `denied` if `command` is not allowed. Only the base name counts. */
export function checkCommand(policy: ShellPolicy, command: string): void {
  const baseName = baseNameOf(command)
  if (policy === 'open' || ALLOWED_COMMANDS.has(baseName)) return
  const [program = '', ...args] = command.trim().split(/\s+/)
  const isLine = args.length > 0
  const remedies = [
    ...(isLine ? ['arguments belong into args'] : []),
    ...(isLine && ALLOWED_COMMANDS.has(baseNameOf(program)) ? [] : REMEDIES),
  ]
  const shown = JSON.stringify(isLine ? command : baseName)
  throw new ExecutionError('denied', `command ${shown} is not in the allowed whitelist (${remedies.join('; ')})`)
}

const baseNameOf = (command: string): string => command.slice(command.lastIndexOf('/') + 1)

const REMEDIES = [
  'a runtime.script task runs any command',
  'SERVICE_SHELL_POLICY=open lifts the list: taskmill up --shell open',
]

/** Throws `denied` unless scripts are allowed: a script could start any program. */
export function checkScript(policy: ShellPolicy): void {
  if (policy === 'open') return
  const remedy = 'scripts run only where SERVICE_SHELL_POLICY=open is set: taskmill up --shell open'
  throw new ExecutionError('denied', `script is not in the allowed whitelist: ${remedy}`)
}

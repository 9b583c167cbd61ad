/** Errors that become HTTP answers or usage errors, and the texts of caught values. */

/** A refused request, or one that the service cannot serve now. `status` is the HTTP status; `message` has the remedy. */
export class ServiceError extends Error {
  override name = 'ServiceError'
  constructor(
    readonly status: number,
    message: string,
    options: ErrorOptions & { readonly headers?: Record<string, string> } = {},
  ) {
    super(message, options)
    this.headers = options.headers ?? {}
  }
  readonly headers: Record<string, string>
}

export const badRequest = (message: string) => new ServiceError(400, message)

/** The password of an address: between the first colon and the last @. */
const PASSWORD = /(:\/\/[^\s:/@]*):\S*@/g

/**
 * A mistake on the command line or in the environment. The message is one line without the passwords of addresses, which
 * it may repeat from a mistyped argument; the exit code is 2.
 */
export class UsageError extends Error {
  override name = 'UsageError'
  constructor(message: string) {
    const line = message.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1))
    super(line.replace(PASSWORD, '$1:***@'))
  }
}

/** The message of a caught value of any type. Never throws. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return 'a value that cannot be turned into text was thrown'
  }
}

/** The stack of a caught value for logs, or its message if it has none. Never throws. */
export function stackOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error && typeof thrown.stack === 'string') return thrown.stack
  } catch {
    // Reading the stack may throw. The message is used instead.
  }
  return messageOf(thrown)
}

/** The system's error code (`ENOENT`, `ECONNREFUSED`), or undefined. */
export const systemCodeOf = (thrown: unknown): string | undefined => {
  const code = (thrown as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/** What a start needs is away, and may come back. The exit code is 1. */
export class StartFault extends Error {
  override name = 'StartFault'
}

/**
 * The message and exit code of a program that could not start: 2 for a usage error, 1 for an error of the system (a full
 * disk), which may pass. Undefined for a defect of ours, whose stack should be printed.
 */
export function startFault(error: unknown): { readonly message: string; readonly exitCode: 1 | 2 } | undefined {
  if (error instanceof UsageError) return { message: error.message, exitCode: 2 }
  if (error instanceof StartFault) return { message: `cannot start: ${error.message}`, exitCode: 1 }
  if (!/^E[A-Z0-9]+$/.test(systemCodeOf(error) ?? '')) return undefined
  return { message: `cannot start: ${messageOf(error)}`, exitCode: 1 }
}

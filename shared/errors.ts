/** Errors that become answers. A route throws one; one `onError` per service turns it into a body. */

/** Something a caller did, or we cannot do now: `status` is the HTTP status, `message` says what and the remedy. */
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

/** A mistake on the command line or in the environment. The message is one line; the exit code is 2. */
export class UsageError extends Error {
  override name = 'UsageError'
  constructor(message: string) {
    super(message.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1))) // whatever was given, one line
  }
}

/** The words of a caught value, whatever was thrown. Never throws, though reading the value may. */
export function messageOf(thrown: unknown): string {
  try {
    return String(thrown instanceof Error ? thrown.message : thrown)
  } catch {
    return 'a value that cannot be turned into text was thrown'
  }
}

/** The stack of a caught value, for logs; its words where it has none. Never throws. */
export function stackOf(thrown: unknown): string {
  try {
    if (thrown instanceof Error && typeof thrown.stack === 'string') return thrown.stack
  } catch {
    // Its words are all there may be.
  }
  return messageOf(thrown)
}

/** The system's error code (`ENOENT`, `ECONNREFUSED`), or undefined. */
export const systemCodeOf = (thrown: unknown): string | undefined => {
  const code = (thrown as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : undefined
}

/**
 * What a program says, in one line, that could not do what it was started for, and how it exits: 2 for a mistake of the
 * caller, 1 for a refusal of the system (a full disk), which may pass. Undefined for a mistake of ours: its stack is wanted.
 */
export function startFault(error: unknown): { readonly message: string; readonly exitCode: 1 | 2 } | undefined {
  if (error instanceof UsageError) return { message: error.message, exitCode: 2 }
  if (!/^E[A-Z0-9]+$/.test(systemCodeOf(error) ?? '')) return undefined
  return { message: `cannot start: ${messageOf(error)}`, exitCode: 1 }
}

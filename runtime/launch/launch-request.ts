/** Requests as the fork server reads them. Pure. The other side and the format are in inbox.h. */
import type { Environment } from './launcher-host.ts'

/** Bytes of a request: as many as the fork server accepts, and more than the kernel accepts for any program. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024

const BYTES_OF_NUMBER = 4
const HEADER_BYTES = 4 * BYTES_OF_NUMBER

/** The largest number of a launch. */
export const MAX_LAUNCH = 2 ** 32 - 1

export type LaunchRequest =
  | { readonly bytes: Buffer }
  /** The error code that Bun.spawn would give for these arguments and this environment. */
  | { readonly code: 'E2BIG' | 'ERR_INVALID_ARG_VALUE' }

/** `argv` are the arguments of the launcher without its name. */
export function launchRequest(launch: number, argv: readonly string[], env: Environment): LaunchRequest {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const strings = [...argv, ...variables]
  if (strings.some((string) => string.includes('\0'))) return { code: 'ERR_INVALID_ARG_VALUE' }
  const text = strings.length === 0 ? '' : `${strings.join('\0')}\0`
  const length = HEADER_BYTES + Buffer.byteLength(text)
  if (length > MAX_REQUEST_BYTES) return { code: 'E2BIG' }
  const bytes = Buffer.allocUnsafe(length)
  const header = [length - BYTES_OF_NUMBER, launch, argv.length, variables.length]
  for (const [i, number] of header.entries()) bytes.writeUInt32LE(number, i * BYTES_OF_NUMBER)
  bytes.write(text, HEADER_BYTES)
  return { bytes }
}

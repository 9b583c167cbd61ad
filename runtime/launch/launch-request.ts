/** Requests as the fork server reads them. Pure. The other side and the format are in inbox.h. */
import type { Environment } from './launcher-host.ts'

/** Bytes of a request: as many as the fork server accepts, and more than the kernel accepts for any program. */
export const MAX_REQUEST_BYTES = 8 * 1024 * 1024

const BYTES_OF_NUMBER = 4
const HEADER_BYTES = 5 * BYTES_OF_NUMBER

/** The kinds of requests by their numbers. A held launch (hold.h) is released or discarded later. */
const KINDS = { launch: 0, hold: 1, release: 2, discard: 3 } as const

/** The largest number of a launch. */
export const MAX_LAUNCH = 2 ** 32 - 1

export type LaunchRequest =
  | { readonly bytes: Buffer }
  /** The error code that Bun.spawn would give for these arguments and this environment. */
  | { readonly code: 'E2BIG' | 'ERR_INVALID_ARG_VALUE' }

/** `argv` are the arguments of the launcher without its name. */
export function launchRequest(
  launch: number,
  argv: readonly string[],
  env: Environment,
  kind: 'launch' | 'hold' = 'launch',
): LaunchRequest {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const strings = [...argv, ...variables]
  if (strings.some((string) => string.includes('\0'))) return { code: 'ERR_INVALID_ARG_VALUE' }
  const text = strings.length === 0 ? '' : `${strings.join('\0')}\0`
  const length = HEADER_BYTES + Buffer.byteLength(text)
  if (length > MAX_REQUEST_BYTES) return { code: 'E2BIG' }
  const bytes = withHeader(length, kind, [launch, argv.length, variables.length])
  bytes.write(text, HEADER_BYTES)
  return { bytes }
}

/** What becomes of a held launch. */
export const wordOnLaunch = (launch: number, kind: 'release' | 'discard'): Buffer =>
  withHeader(HEADER_BYTES, kind, [launch, 0, 0])

function withHeader(length: number, kind: keyof typeof KINDS, numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  const all = [length - BYTES_OF_NUMBER, KINDS[kind], ...numbers]
  for (const [i, number] of all.entries()) bytes.writeUInt32LE(number, i * BYTES_OF_NUMBER)
  return bytes
}

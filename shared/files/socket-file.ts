/** The file of a Unix socket that a service listens on. */
import { lstatSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { systemCodeOf, UsageError } from '../contract/errors.ts'

/** Bytes of the path by system: the size of `sun_path` without its final zero. */
export const SOCKET_PATH_BYTES = { linux: 107, others: 103 } as const
export const MAX_SOCKET_PATH_BYTES = SOCKET_PATH_BYTES[process.platform === 'linux' ? 'linux' : 'others']

/** Only its owner can connect, wherever the socket is. */
const SOCKET_UMASK = 0o177

/**
 * Removes the socket that a killed service left at `path`. Throws `UsageError` if a service listens there, or no socket
 * can be made there; `flag` sets the path.
 */
export async function ensureSocketPlace(path: string, flag: string): Promise<void> {
  const refuse = (why: string) => new UsageError(`cannot listen on ${path}: ${why} (choose another with --${flag})`)
  const bytes = Buffer.byteLength(path)
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw refuse(`the path has ${bytes} bytes, and that of a socket can have at most ${MAX_SOCKET_PATH_BYTES}`)
  }
  if (lstatSync(dirname(path), { throwIfNoEntry: false }) === undefined) throw refuse('its directory does not exist')
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (!found.isSocket()) throw refuse('there is something else than a socket')
  if (await isListening(path)) throw refuse('the address is in use')
  rmSync(path, { force: true })
}

async function isListening(path: string): Promise<boolean> {
  try {
    const connection = await Bun.connect({ unix: path, socket: { data() {} } })
    connection.end()
    return true
  } catch (error) {
    // A socket that others may not connect to is theirs, and in use for all we know.
    return !['ECONNREFUSED', 'ENOENT'].includes(systemCodeOf(error) ?? '')
  }
}

/** Calls `bind`, which makes a socket, so that the socket is private from the beginning. */
export function privately<T>(bind: () => T): T {
  const before = process.umask(SOCKET_UMASK)
  try {
    return bind()
  } finally {
    process.umask(before)
  }
}

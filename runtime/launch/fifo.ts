/** A FIFO: a pipe with a name, by which the next service finds it again. */
import { ptr } from 'bun:ffi'
import { closeSync, constants, lstatSync, openSync, unlinkSync } from 'node:fs'
import { loadLibc } from '../../shared/process/libc.ts'

const { O_NOFOLLOW, O_NONBLOCK, O_RDWR } = constants

/** Read and write for the owner. */
const MODE = 0o600

const load = () => loadLibc({ mkfifo: { args: ['ptr', 'u32'], returns: 'i32' } } as const)
let libc: ReturnType<typeof load> | undefined

/**
 * Makes a FIFO at `path` unless there is one, and opens it for reading and writing without blocking. So it always has a
 * reader and a writer. Throws the system's error.
 */
export function openFifo(path: string): number {
  if (libc === undefined) libc = load()
  const isMade = libc !== null && libc.mkfifo(ptr(Buffer.from(`${path}\0`)), MODE) === 0
  if (!isMade && !isFifo(path)) throw reasonAgainst(path)
  return openSync(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW)
}

/** A call into the C library does not report errno. Making a regular file there fails for the same reason. */
function reasonAgainst(path: string): Error {
  try {
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) return new Error(`${path} is there and is no FIFO`)
    closeSync(openSync(path, 'wx', MODE))
    unlinkSync(path)
    return new Error(`cannot make the FIFO ${path}: its file system has none`)
  } catch (error) {
    return error as Error
  }
}

const isFifo = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false

/**
 * A pipe of the operating system.
 *
 * `Bun.spawn` with `"pipe"` gives the child a socket, and a socket cannot be opened again through `/dev/stdout` or
 * `/dev/stderr`, as scripts often do (`echo trouble > /dev/stderr` fails with ENXIO). A real pipe can.
 */
import { ptr } from 'bun:ffi'
import { closeSync, readSync } from 'node:fs'
import { systemCodeOf } from '../contract/errors.ts'
import { loadLibc } from './libc.ts'

/** File descriptors, closed by the caller. Both are close-on-exec. */
export interface Pipe {
  readonly readEnd: number
  readonly writeEnd: number
}

const O_CLOEXEC = 0o2000000
const O_NONBLOCK = 0o4000
const F_SETFL = 4

/** Bytes of one read: a pipe holds as many, unless its writer asks for more. */
const PIPE_BYTES = 64 * 1024

const load = () =>
  loadLibc({
    pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
    fcntl: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  } as const)
let libc: ReturnType<typeof load> | undefined

/** A new pipe whose reader never blocks, or null if the system has no `pipe2` or no descriptor is left. */
export function openPipe(): Pipe | null {
  if (libc === undefined) libc = load()
  if (libc === null) return null
  const ends = new Int32Array(2)
  if (libc.pipe2(ptr(ends), O_CLOEXEC) !== 0) return null
  libc.fcntl(ends[0]!, F_SETFL, O_NONBLOCK)
  return { readEnd: ends[0]!, writeEnd: ends[1]! }
}

const buffer = new Uint8Array(PIPE_BYTES)

/**
 * Passes what is in `pipe` to `push`, without waiting. `ended` if no process has the other end, `full` if there was as much
 * as a pipe holds: its writer may have been waiting.
 */
export function drainPipe({ readEnd }: Pipe, push: (chunk: Uint8Array) => void): 'ended' | 'open' | 'full' {
  try {
    for (let rest = PIPE_BYTES; rest > 0; ) {
      const size = readSync(readEnd, buffer)
      if (size === 0) return 'ended'
      push(buffer.slice(0, size))
      rest -= size
    }
    return 'full'
  } catch (error) {
    if (systemCodeOf(error) !== 'EAGAIN') throw error
    return 'open'
  }
}

/** Closes this end of each pipe that is not null. */
export function closeEnds(end: keyof Pipe, pipes: readonly (Pipe | null)[]): void {
  for (const pipe of pipes) if (pipe !== null) closeSync(pipe[end])
}

/** The output of a child: from `pipe`, or without one from the stream of Bun. */
export const streamOf = (pipe: Pipe | null, ofBun: unknown): ReadableStream<Uint8Array> =>
  pipe === null ? (ofBun as ReadableStream<Uint8Array>) : Bun.file(pipe.readEnd).stream()

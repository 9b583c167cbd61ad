/**
 * A pipe of the operating system.
 *
 * `Bun.spawn` with `"pipe"` gives the child a socket, and a socket cannot be opened again through `/dev/stdout` or
 * `/dev/stderr`, which scripts do all the time (`echo trouble > /dev/stderr` fails with ENXIO). A real pipe can.
 */
import { dlopen, type Library, ptr } from 'bun:ffi'

/** File descriptors, ours to close. Both are close-on-exec. */
export interface Pipe {
  readonly readEnd: number
  readonly writeEnd: number
}

const PIPE2 = { pipe2: { args: ['ptr', 'i32'], returns: 'i32' } } as const
const O_CLOEXEC = 0o2000000
const LIBC_NAMES = ['libc.so.6', 'libc.so']

let libc: Library<typeof PIPE2> | null | undefined

/** A new pipe, or null where the system has no `pipe2` or no descriptor is left. */
export function openPipe(): Pipe | null {
  libc ??= process.platform === 'linux' ? loadLibc() : null
  if (libc === null) return null
  const ends = new Int32Array(2)
  if (libc.symbols.pipe2(ptr(ends), O_CLOEXEC) !== 0) return null
  return { readEnd: ends[0]!, writeEnd: ends[1]! }
}

function loadLibc(): Library<typeof PIPE2> | null {
  for (const name of LIBC_NAMES) {
    try {
      return dlopen(name, PIPE2)
    } catch {
      // the next name: musl has no libc.so.6
    }
  }
  return null
}

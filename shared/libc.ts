/** System calls that Bun has no function for. Everything here says what to do without them. */
import { dlopen, type FFIFunction, type Library } from 'bun:ffi'

/** The names of the C library where there is one to load: glibc and musl, macOS. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  linux: ['libc.so.6', 'libc.so'],
  darwin: ['libSystem.B.dylib'],
}

/** The functions of `signatures`, or null where the system lacks one of them. */
export function loadLibc<S extends Record<string, FFIFunction>>(signatures: S): Library<S>['symbols'] | null {
  for (const name of LIBRARIES[process.platform] ?? []) {
    try {
      return dlopen(name, signatures).symbols
    } catch {
      // the next name: musl has no libc.so.6
    }
  }
  return null
}

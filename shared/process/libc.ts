/** Functions of the C library that Bun lacks. Callers have a fallback for systems without them. */
import { dlopen, type FFIFunction, type Library } from 'bun:ffi'

/** File names of the C library: glibc, musl, macOS. */
const LIBRARIES: Readonly<Record<string, readonly string[]>> = {
  linux: ['libc.so.6', 'libc.so'],
  darwin: ['libSystem.B.dylib'],
}

/** The functions of `signatures`, or null if the system lacks one of them. */
export function loadLibc<S extends Record<string, FFIFunction>>(signatures: S): Library<S>['symbols'] | null {
  for (const name of LIBRARIES[process.platform] ?? []) {
    try {
      return dlopen(name, signatures).symbols
    } catch {
      // Try the next name: musl has no libc.so.6.
    }
  }
  return null
}

/** Concatenates bytes in steps, because to copy megabytes takes longer than a turn of the event loop may. Pure. */
import type { Steps } from '../process/steps.ts'

export function* joinedBytes(parts: readonly Uint8Array[]): Steps<Uint8Array> {
  const all = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
    yield
  }
  return all
}

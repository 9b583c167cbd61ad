/** Passes bytes between two ends of a connection, each way at the speed of its receiver. */
import type { Endpoint } from './endpoint.ts'

/** Called before bytes are passed on. False: they may not be, and nothing more is. */
export type Meter = (bytes: number) => boolean

/**
 * Passes on what `from` sends until it ends; then ends `to`. If `from` breaks off, so does `to`. If `to` is gone, this
 * returns, and what `to` sent before is still passed on by the relay of the other way.
 */
export async function relay(from: Endpoint, to: Endpoint, meter: Meter): Promise<void> {
  for (;;) {
    const bytes = await from.read()
    if (bytes === undefined) {
      if (from.isBroken) to.destroy()
      else to.end()
      return
    }
    if (!meter(bytes.length) || !(await to.write(bytes))) return
  }
}

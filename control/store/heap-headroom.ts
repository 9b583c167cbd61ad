/**
 * Headroom for the garbage collector.
 *
 * JavaScriptCore collects when the heap has grown by about as much as it held after the collection before. While 100,000
 * tasks are taken in and run it grows from 3 MB to 130 and is collected two dozen times, each time over tasks that all
 * stay. So the heap holds a block besides that nobody writes to: it counts as held, but the kernel gives it no memory, as
 * no page of it is ever touched. What it costs is garbage that may lie about for longer.
 *
 * Measured with 64 MiB: 100,000 tasks in 211 ms instead of 234, and 4 % more graphs of ten tasks a second; 20 % more memory
 * at the peak, as much as before a few seconds later, and nothing more at rest.
 */

const MAX_HEADROOM_BYTES = 64 * 1024 * 1024

/** Where memory is short, less: this part of it. */
const PART_OF_MEMORY = 1 / 16

/** Bytes of headroom on a machine, or in a container, with so much memory. */
export const headroomBytes = (memoryBytes: number): number =>
  Math.min(MAX_HEADROOM_BYTES, Math.floor(memoryBytes * PART_OF_MEMORY))

const held: Uint8Array[] = []

/** Takes the headroom, once, for as long as the process lives. Without the address space for it there is none. */
export function takeHeapHeadroom(): void {
  if (held.length > 0) return
  try {
    held.push(new Uint8Array(headroomBytes(process.constrainedMemory())))
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
  }
}

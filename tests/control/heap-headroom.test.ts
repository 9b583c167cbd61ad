/** Goal: the collector sees a large heap, the machine does not. Method: a process of its own that takes the headroom. */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { headroomBytes } from '../../control/heap-headroom.ts'

const MB = 1024 * 1024

test.each([
  [24 * 1024 * MB, 64 * MB],
  [1024 * MB, 64 * MB],
  [512 * MB, 32 * MB],
  [64 * MB, 4 * MB],
])('of %d bytes of memory it takes at most %d', (memory, headroom) => {
  expect(headroomBytes(memory)).toBe(headroom)
})

test('counts as held, however often it is taken, and takes no memory', async () => {
  const program = `
    const { heapStats } = await import('bun:jsc')
    const { takeHeapHeadroom } = await import(${JSON.stringify(join(import.meta.dir, '../../control/heap-headroom.ts'))})
    const look = () => { Bun.gc(true); return { held: heapStats().extraMemorySize, resident: process.memoryUsage.rss() } }
    const before = look()
    takeHeapHeadroom()
    takeHeapHeadroom()
    const after = look()
    console.log(JSON.stringify({ held: after.held - before.held, resident: after.resident - before.resident }))
  `
  const child = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stderr: 'inherit' })
  const { held, resident } = (await new Response(child.stdout).json()) as Record<'held' | 'resident', number>
  const expected = headroomBytes(process.constrainedMemory())
  expect(held).toBeGreaterThan(0.9 * expected)
  expect(held).toBeLessThan(1.5 * expected)
  expect(resident).toBeLessThan(expected / 4)
})

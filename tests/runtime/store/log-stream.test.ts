/** Goal: a stream of an output leaves no descriptor, however it ends. Method: our own descriptors, as the kernel lists them. */
import { expect, test } from 'bun:test'
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { logStream } from '../../../runtime/store/log-stream.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const isOpen = (path: string): boolean =>
  readdirSync('/proc/self/fd').some((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path
    } catch {
      return false
    }
  })
const closed = (path: string) =>
  until(
    () => isOpen(path),
    (open) => !open,
  )

test('read to its end', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'log')
  writeFileSync(path, 'all of it')
  expect(await new Response(logStream(path, {})).text()).toBe('all of it')
  await closed(path)
})

test('left by one who waits for more, and by one who does not even read', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'log')
  writeFileSync(path, 'begin')
  const follow = { ended: new Promise(() => {}) }
  const reader = logStream(path, follow).getReader()
  expect(Buffer.from((await reader.read()).value!).toString()).toBe('begin')
  const more = reader.read()
  await reader.cancel()
  expect((await more).done).toBe(true)
  await logStream(path, follow).cancel()
  await closed(path)
})

test.skipIf(process.platform !== 'linux')('of a file that cannot be read', async () => {
  const path = `/proc/${process.pid}/mem` // at its beginning there is nothing
  await expect(new Response(logStream(path, {})).text()).rejects.toThrow()
  await closed(path)
})

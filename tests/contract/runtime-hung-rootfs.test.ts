/**
 * A rootfs on a file system that never answers is refused, and holds up nobody. Source: docs/runtime.md, Submit a task.
 * Method: FUSE that nobody serves, in the mount namespace of the built executable.
 */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { LOOK_TIMEOUT_MS, MAX_LOOKS } from '../../runtime/host/path-looks.ts'
import { endHungMount, missingHungMount, withHungMount } from '../support/hung-mount.ts'
import { type Runtime, startRuntime } from '../support/runtime.ts'
import { command, refused } from '../support/runtime-tasks.ts'
import { type TempDir, tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'

const TRUE = command('/bin/true')
const why = missingHungMount === undefined ? '' : ` (skipped: ${missingHungMount})`

describe.skipIf(missingHungMount !== undefined)(`a rootfs on a file system that hangs${why}`, () => {
  let dir: TempDir
  let hung: string
  let runtime: Runtime
  beforeAll(async () => {
    dir = tempDir()
    hung = join(dir.path, 'hung')
    mkdirSync(hung)
    runtime = await startRuntime({ through: withHungMount(hung) })
  })
  afterAll(async () => {
    await runtime?.dispose()
    dir[Symbol.dispose]()
  })

  const submit = (rootfs: string) =>
    runtime.post({ ...TRUE, sandbox: { profile: 'linux_sandbox', chroot: true, rootfs } })

  /** On a busy machine other looks may take all the time of this one. The service then asks to try again. */
  const submitPatiently = (rootfs: string) =>
    until(
      () => submit(rootfs),
      ({ status }) => status !== 503,
    )
  /** Of a path that answers. On a busy machine its look may begin when its time is nearly over. */
  const refusedInTime = (rootfs: string) =>
    until(
      async () => await refused(await submit(rootfs)),
      ([status, , text]) => status !== 503 && !text.includes('did not answer'),
    )
  const didNotAnswer = (rootfs: string): [number, string, string] => [
    ...([400, 'invalid_input'] as const),
    `sandbox.rootfs ${rootfs} did not answer within ${LOOK_TIMEOUT_MS} ms: its file system hangs (check its mount and what serves it, or put the root elsewhere)`,
  ]

  test('is invalid input, by whatever paths; meanwhile other tasks are taken, run and end, those with a rootfs too', async () => {
    const link = join(dir.path, 'link')
    symlinkSync(join(hung, 'linked'), link)
    const paths = [...Array.from({ length: 2 * MAX_LOOKS }, (_, n) => join(hung, `${n}`)), hung, link]
    const answers = Promise.all(paths.map(submitPatiently))
    expect((await runtime.fetch('/readyz')).status).toBe(200)
    expect((await runtime.run(TRUE)).status).toBe('success')
    const missing = [400, 'invalid_input', expect.stringContaining('not there on this host')]
    expect(await refusedInTime('/no/such/root')).toEqual(missing as never)
    expect(await refusedInTime(join(dir.path, 'nothing'))).toEqual(missing as never)
    for (const [n, answer] of (await answers).entries()) expect(await refused(answer)).toEqual(didNotAnswer(paths[n]!))
    expect(await refusedInTime('/no/such/root')).toEqual(missing as never)
    expect((await submitPatiently('/')).status).not.toBe(503)
  })

  test('is refused at once from then on, by whatever path, until it answers', async () => {
    for (const path of [join(hung, '0'), join(hung, 'new'), join(dir.path, 'link'), join(hung, 'a/b')]) {
      const refusedWithinMs = async () => {
        const since = performance.now()
        expect(await refused(await submit(path))).toEqual(didNotAnswer(path))
        return performance.now() - since
      }
      await until(refusedWithinMs, (ms) => ms < LOOK_TIMEOUT_MS) // a busy machine may be late, but not each time
    }
  })

  test('is refused also where it is not the root', async () => {
    const rootfs = join(hung, 'unused')
    for (const sandbox of [
      { profile: 'process', rootfs },
      { profile: 'linux_sandbox', chroot: false, rootfs },
    ]) {
      expect(await refused(await runtime.post({ ...TRUE, sandbox }))).toEqual(didNotAnswer(rootfs))
    }
  })

  test('does not keep the service from ending', async () => {
    await using other = await startRuntime({ through: withHungMount(hung) })
    const rootfs = join(hung, '0')
    const answer = other.post({ ...TRUE, sandbox: { profile: 'linux_sandbox', chroot: true, rootfs } })
    const isEnded = answer.then(
      () => true,
      () => true,
    )
    expect((await other.run(TRUE)).status).toBe('success') // so the look has begun
    expect(await other.stop('SIGTERM')).toBe(0)
    expect(await isEnded).toBe(true)
  })

  test('is looked at again once it answers', async () => {
    endHungMount(runtime.process.pid, hung)
    const path = join(hung, '0')
    const [status, code, message] = await refusedInTime(path)
    expect([status, code]).toEqual([400, 'invalid_input'])
    expect(message).toMatch(/cannot be used on this host|is not there on this host/)
  })
})

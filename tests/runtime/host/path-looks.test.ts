/**
 * Goal: what hangs is given up, remembered, bounded, and holds up nothing else.
 * Method: real looks at files of the test; threads whose answers the test gives.
 */
import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type LookAnswer, type LookRequest, lookAt, type PathInfo } from '../../../runtime/host/path-look.ts'
import {
  type LookThread,
  MAX_LOOKS,
  NoThread,
  PathLooks,
  PathTimeout,
  placeOf,
} from '../../../runtime/host/path-looks.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

test('a look says whether there is a directory, and its real path, or why not', () => {
  using dir = tempDir()
  const at = (name: string) => join(dir.path, name)
  mkdirSync(at('real'))
  symlinkSync('real', at('link'))
  symlinkSync('loop', at('loop'))
  writeFileSync(at('file'), '')
  const real = at('real')
  expect(lookAt(at('link'))).toEqual({ isThere: true, isDirectory: true, realPath: real })
  expect(lookAt(at('file'))).toEqual({ isThere: true, isDirectory: false, realPath: at('file') })
  expect(lookAt(at('missing'))).toEqual({ isThere: false })
  expect(lookAt(at('loop'))).toMatchObject({ code: 'ELOOP' })
  expect(lookAt(`/${'x'.repeat(300)}`)).toMatchObject({ code: 'ENAMETOOLONG' })
})

const THERE: PathInfo = { isThere: true, isDirectory: true, realPath: '/real' }

/** A thread that answers when the test says so. */
class Thread implements LookThread {
  onmessage: LookThread['onmessage'] = null
  onerror: LookThread['onerror'] = null
  path: string | undefined
  avoid: readonly string[] = []
  isTerminated = false
  postMessage({ path, avoid }: LookRequest): void {
    this.path = path
    this.avoid = avoid
  }
  say(answer: LookAnswer): void {
    this.onmessage!({ data: answer } as MessageEvent<LookAnswer>)
  }
  answer(): void {
    this.say({ look: THERE })
  }
  terminate(): void {
    this.isTerminated = true
  }
}

const PATIENT_MS = 60_000

/** Places are the first names of paths. */
function looksIn(timeoutMs: number, slowMs = 1) {
  const threads: Thread[] = []
  const start = () => {
    const thread = new Thread()
    threads.push(thread)
    return thread
  }
  const placeOf = (path: string) => `/${path.split('/')[1]}`
  const looks = new PathLooks(start, { timeoutMs, slowMs, placeOf })
  const threadOf = (path: string) =>
    until(
      () => threads.find((thread) => thread.path === path),
      (thread) => thread !== undefined,
    ).then((thread) => thread!)
  return { looks, threads, threadOf }
}

const fault = (look: Promise<PathInfo>) =>
  look.then(
    () => undefined,
    (error: unknown) => error,
  )

describe('looks', () => {
  test('share a thread one after the other, and a look at the same path', async () => {
    const { looks, threads, threadOf } = looksIn(PATIENT_MS, PATIENT_MS)
    const same = [looks.lookAt('/a'), looks.lookAt('/a')]
    const next = looks.lookAt('/b')
    const first = await threadOf('/a')
    first.answer()
    expect(await Promise.all(same)).toEqual([THERE, THERE])
    const second = await threadOf('/b')
    second.answer()
    expect(await next).toEqual(THERE)
    expect(threads.map(({ isTerminated }) => isTerminated)).toEqual([false])
    looks.close()
    expect(threads.map(({ isTerminated }) => isTerminated)).toEqual([true])
  })

  test('that take long let others begin, which keep away from there, until they are back', async () => {
    const { looks, threadOf } = looksIn(PATIENT_MS)
    const slow = looks.lookAt('/slow/a')
    const other = looks.lookAt('/link')
    const thread = await threadOf('/slow/a')
    thread.say({ asking: '/slow' })
    const otherThread = await threadOf('/link')
    expect(otherThread.avoid).toEqual(['/slow'])
    otherThread.say({ avoided: '/slow' })
    thread.answer()
    expect(await slow).toEqual(THERE)
    const again = await threadOf('/link')
    expect(again.avoid).toEqual([])
    again.answer()
    expect(await other).toEqual(THERE)
  })

  test('that were slow and moved on let those begin again that kept away from there', async () => {
    const { looks, threadOf } = looksIn(PATIENT_MS)
    const slow = looks.lookAt('/slow/a')
    const other = looks.lookAt('/link')
    const thread = await threadOf('/slow/a')
    thread.say({ asking: '/slow' })
    const otherThread = await threadOf('/link')
    otherThread.say({ avoided: '/slow' })
    thread.say({ asking: '/hung' })
    expect([otherThread.path, otherThread.avoid]).toEqual(['/link', ['/hung']])
    otherThread.answer()
    expect(await other).toEqual(THERE)
    thread.answer()
    expect(await slow).toEqual(THERE)
  })

  test('that do not answer in time are given up; what leads there is refused at once, until they return', async () => {
    const { looks, threads, threadOf } = looksIn(200)
    const hung = fault(looks.lookAt('/hung/0'))
    const hungThread = await threadOf('/hung/0')
    hungThread.say({ asking: '/hung' })
    expect(await hung).toBeInstanceOf(PathTimeout)
    for (let n = 1; n <= 2 * MAX_LOOKS; n++) {
      const look = fault(looks.lookAt(`/hung/${n}`))
      const thread = await threadOf(`/hung/${n}`)
      thread.say({ avoided: '/hung' })
      expect(await look).toBeInstanceOf(PathTimeout)
    }
    expect(threads).toHaveLength(2)
    hungThread.answer()
    const again = looks.lookAt('/hung/again')
    const thread = await threadOf('/hung/again')
    expect(thread.avoid).toEqual([])
    thread.answer()
    expect(await again).toEqual(THERE)
  })

  test('at as many places as may hang leave no thread, which is said', async () => {
    const { looks, threadOf } = looksIn(300)
    const faults: Promise<unknown>[] = []
    for (let n = 0; n < MAX_LOOKS; n++) {
      faults.push(fault(looks.lookAt(`/hung-${n}`)))
      const thread = await threadOf(`/hung-${n}`)
      thread.say({ asking: `/hung-${n}` })
    }
    const late = (await fault(looks.lookAt('/late'))) as Error
    expect(late).toBeInstanceOf(NoThread)
    expect(late.message).toContain('/hung-0, /hung-1')
    expect((await Promise.all(faults)).every((error) => error instanceof PathTimeout)).toBe(true)
  })

  test('without a thread say so, and the next one tries again', async () => {
    let fails = true
    const thread = new Thread()
    const looks = new PathLooks(
      () => {
        if (fails) throw new Error('no thread')
        return thread
      },
      { timeoutMs: PATIENT_MS },
    )
    expect(((await fault(looks.lookAt('/a'))) as Error).message).toBe('no thread')
    fails = false
    const next = looks.lookAt('/a')
    thread.onerror!({ message: 'it broke' } as ErrorEvent)
    expect(((await fault(next)) as Error).message).toBe('it broke')
    expect(thread).toMatchObject({ isTerminated: true, onmessage: null, onerror: null })
  })
})

test('the place of a path is its mount point; below the root, or an automounter, it is the path', () => {
  const mountInfo = [
    '22 1 8:1 / / rw - ext4 /dev/sda1 rw',
    '30 22 0:40 / /mnt/with\\040space rw - nfs server:/ rw',
    '31 22 0:41 / /net rw - autofs auto rw',
    '32 31 0:42 / /net/host rw - nfs host:/ rw',
  ].join('\n')
  expect(placeOf('/mnt/with space/a/b', mountInfo)).toBe('/mnt/with space')
  expect(placeOf('/mnt/with', mountInfo)).toBe('/mnt/with')
  expect(placeOf('/net/other', mountInfo)).toBe('/net/other')
  expect(placeOf('/net/host/a', mountInfo)).toBe('/net/host')
})

test('a look follows links name by name, and stops before a place that is to be avoided', () => {
  using dir = tempDir()
  const at = (name: string) => join(dir.path, name)
  mkdirSync(at('real/below'), { recursive: true })
  symlinkSync(at('real'), at('absolute'))
  symlinkSync('./absolute/../real/.', at('relative'))
  expect(lookAt(at('relative/below'))).toEqual({ isThere: true, isDirectory: true, realPath: at('real/below') })
  const asked: string[] = []
  const isAvoided = (path: string) => asked.push(path) > 0 && path === at('real')
  expect(lookAt(at('relative/below'), isAvoided)).toBeUndefined()
  expect(asked.filter((path) => path.startsWith(`${dir.path}/`))).toEqual(['relative', 'absolute', 'real'].map(at))
  writeFileSync(at('file'), '')
  expect(lookAt(`${at('file')}/..`)).toMatchObject({ code: 'ENOTDIR' })
  expect(lookAt('/')).toEqual({ isThere: true, isDirectory: true, realPath: '/' })
})

/**
 * Goal: all who follow an output share one descriptor, one watch and each read, everybody gets every byte, and nothing is
 * left, however a stream ends. Method: our own descriptors and watches, as the kernel lists them.
 */
import { expect, test } from 'bun:test'
import {
  appendFileSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { logStream } from '../../../runtime/store/log-stream.ts'
import { tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const linkOf = (fd: string): string => {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}
const descriptors = (isMeant: (target: string) => boolean): string[] =>
  readdirSync('/proc/self/fd').filter((fd) => isMeant(linkOf(fd)))

/** How often the file at `path` is open. */
const openCount = (path: string): number => descriptors((target) => target === path).length

/** How many watches the kernel keeps of the file at `path`. */
function watchCount(path: string): number {
  const inode = `ino:${statSync(path).ino.toString(16)} `
  const watches = descriptors((target) => target === 'anon_inode:inotify').flatMap((fd) =>
    readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8').split('\n'),
  )
  return watches.filter((line) => line.startsWith('inotify ') && line.includes(inode)).length
}

const closed = (path: string) => until(() => openCount(path), 0)

/** What a stream has given so far, and the promise of all of it. */
function reading(stream: ReadableStream<Uint8Array>) {
  const state = { text: '' }
  const done = (async () => {
    for await (const chunk of stream) state.text += Buffer.from(chunk).toString('latin1')
  })()
  return { state, done }
}

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

test.skipIf(process.platform !== 'linux')('many who follow one share a descriptor and a watch', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'log')
  writeFileSync(path, 'begin')
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const readers = Array.from({ length: 1_000 }, () => reading(logStream(path, { ended })))
  const all = (wanted: string) =>
    until(() => readers.filter(({ state }) => state.text === wanted).length, readers.length)
  await all('begin')
  // Other threads close what the others opened.
  await until(() => [openCount(path), watchCount(path)].join(), '1,1')
  appendFileSync(path, ' more')
  await all('begin more')
  appendFileSync(path, ' end')
  end()
  await Promise.all(readers.map(({ done }) => done))
  expect(readers.every(({ state }) => state.text === 'begin more end')).toBe(true)
  await closed(path)
})

test('readers of every speed get every byte, while it is written', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'log')
  writeFileSync(path, '')
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const slowly = async (stream: ReadableStream<Uint8Array>, turns: number) => {
    const hash = new Bun.CryptoHasher('sha256')
    for await (const chunk of stream) {
      hash.update(chunk)
      for (let i = 0; i < turns; i++) await new Promise(setImmediate)
    }
    return hash.digest('hex')
  }
  const readers = [0, 1, 10, 100].map((turns) => slowly(logStream(path, { ended }), turns))
  const written = new Bun.CryptoHasher('sha256')
  for (let i = 0; i < 40; i++) {
    const block = Buffer.alloc(20_000 + i * 997, `${i},`)
    written.update(block)
    appendFileSync(path, block)
    await new Promise(setImmediate)
    if (i === 20) readers.push(slowly(logStream(path, { ended }), 3))
  }
  end()
  const wanted = written.digest('hex')
  for (const reader of readers) expect(await reader).toBe(wanted)
  await closed(path)
})

test('a new file of the same name is not taken for the one that is followed', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'log')
  writeFileSync(path, 'old')
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const old = reading(logStream(path, { ended }))
  await until(() => old.state.text, 'old')
  rmSync(path)
  writeFileSync(path, 'new')
  expect(await new Response(logStream(path, {})).text()).toBe('new')
  end()
  await old.done
  expect(old.state.text).toBe('old')
})

test('a file that its task empties and writes again goes on for those who follow it', async () => {
  using dir = tempDir()
  const path = join(dir.path, 'log')
  writeFileSync(path, 'ab')
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const reader = reading(logStream(path, { ended }))
  await until(() => reader.state.text, 'ab')
  truncateSync(path)
  appendFileSync(path, 'cdef')
  await until(() => reader.state.text, 'abef')
  end()
  await reader.done
})

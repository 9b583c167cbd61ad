/**
 * Goal: what is saved is the file as it was at one moment, over lost connections and calls, and a tar leads nowhere else.
 * Method: a source in memory that cuts, changes and lies.
 */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tarForm } from '../../../runtime/files/tar.ts'
import type { TreeStep } from '../../../runtime/files/tree-walk.ts'
import { type SaveRequest, saveFile } from '../../../shared/streams/saved-file.ts'
import type { StreamSource } from '../../../shared/streams/source.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

class Refused extends Error {
  constructor(readonly status: number) {
    super(`refused with ${status}`)
  }
}

interface Served {
  text: string | Uint8Array
  etag: string
  type?: string
}

/** One that serves `file.text` in parts, and breaks a connection after each of `cuts` bytes. */
function serving(file: Served, cuts: number[] = []) {
  const asked: string[] = []
  const source: StreamSource = {
    open: async (_, headers) => {
      const isSame = (headers['if-range'] ?? file.etag) === file.etag
      const from = isSame ? Number(/^bytes=(\d+)-/.exec(headers.range ?? '')?.[1] ?? 0) : 0
      asked.push(headers['if-range'] === undefined ? 'all' : `${from} if ${headers['if-range']}`)
      const size = file.text.length
      if (from >= size) throw new Refused(416)
      const range = isSame ? { 'content-range': `bytes ${from}-${size - 1}/${size}` } : {}
      const cut = cuts.shift()
      const { text } = file
      const whole = typeof text === 'string' ? new TextEncoder().encode(text) : text
      const bytes = whole.subarray(from, cut === undefined ? size : from + cut)
      return {
        headers: new Headers({
          ...{ etag: file.etag, 'x-file-bytes': String(size), ...range },
          ...(file.type !== undefined && { 'content-type': file.type }),
        }),
        stream: new ReadableStream<Uint8Array>(
          {
            start: (controller) => controller.enqueue(bytes),
            pull: (controller) => (cut === undefined ? controller.close() : controller.error(new Error('cut'))),
          },
          { highWaterMark: 1 },
        ),
      }
    },
  }
  return { source, asked }
}

/** One of an earlier version, which serves `bytes` as the tar of a directory. */
const ofTar = (bytes: Uint8Array): StreamSource => ({
  open: async () => ({
    headers: new Headers({ 'content-type': 'application/x-tar' }),
    stream: new Response(bytes as Uint8Array<ArrayBuffer>).body as ReadableStream<Uint8Array>,
  }),
})

const save = (source: StreamSource, to: string, tries = 10, onProgress: SaveRequest['onProgress'] = () => {}) =>
  saveFile(source, {
    ...{ path: '/f', name: 'f', to, signal: new AbortController().signal, onProgress },
    statusOf: (error) => (error instanceof Refused ? error.status : undefined),
    patience: {
      over: () => {},
      lost: async (error) => {
        if (tries-- <= 0) throw error
      },
    },
  })

const failure = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'saved',
    (error) => String(error.message),
  )

const listOf = ({ path }: TempDir) => readdirSync(path).toSorted()

test('a file that is cut off is continued where it ended', async () => {
  using temp = tempDir()
  const { source, asked } = serving({ text: '0123456789', etag: '"a-1"' }, [3, 4])
  const saved = await save(source, join(temp.path, 'x'))
  expect(saved).toEqual({ path: join(temp.path, 'x'), type: 'file', bytes: 10, files: 1, resumed_at: 0 })
  expect(asked).toEqual(['all', '3 if "a-1"', '7 if "a-1"'])
  expect(readFileSync(join(temp.path, 'x'), 'utf8')).toBe('0123456789')
  expect(listOf(temp)).toEqual(['x'])
})

test('what an earlier call has left is continued, unless the file has changed', async () => {
  using temp = tempDir()
  const file = { text: '0123456789', etag: '"a-1"' }
  for (const [changed, expected] of [
    [file, { bytes: 10, resumed_at: 4 }],
    [
      { text: 'another', etag: '"a-2"' },
      { bytes: 7, resumed_at: 0 },
    ],
  ] as const) {
    expect(await failure(save(serving(file, [4]).source, temp.path, 0))).toBe('cut')
    expect(listOf(temp).filter((name) => name !== 'f')).toEqual(['.f.a-1.part'])
    expect(await save(serving(changed).source, temp.path)).toMatchObject(expected)
    expect(readFileSync(join(temp.path, 'f'), 'utf8')).toBe(changed.text)
    expect(listOf(temp)).toEqual(['f'])
  }
})

test('a complete part needs nothing more, and an empty file is a file', async () => {
  using temp = tempDir()
  writeFileSync(join(temp.path, '.x.a-1.part'), '0123456789')
  const whole = serving({ text: '0123456789', etag: '"a-1"' }).source
  expect(await save(whole, join(temp.path, 'x'))).toMatchObject({ bytes: 10, resumed_at: 10 })
  expect(await save(serving({ text: '', etag: '"e"' }).source, join(temp.path, 'y'))).toMatchObject({ bytes: 0 })
  expect(listOf(temp)).toEqual(['x', 'y'])
})

test('a file that changes meanwhile is read anew, and given up if it goes on', async () => {
  using temp = tempDir()
  const file = { text: 'one one', etag: '"1"' }
  const { source } = serving(file, [3])
  const changing: StreamSource = {
    open: (...given) => {
      const answer = source.open(...given)
      Object.assign(file, { text: 'two', etag: '"2"' })
      return answer
    },
  }
  expect(await save(changing, join(temp.path, 'x'))).toMatchObject({ bytes: 3 })
  expect(readFileSync(join(temp.path, 'x'), 'utf8')).toBe('two')
  let count = 0
  const endless: StreamSource = {
    open: (...given) => serving({ text: 'xx', etag: `"${count++}"` }, [1]).source.open(...given),
  }
  expect(await failure(save(endless, join(temp.path, 'y')))).toContain('changes while it is read')
})

test('a symlink in the place of the part is not followed', async () => {
  using temp = tempDir()
  writeFileSync(join(temp.path, 'mine'), 'mine')
  symlinkSync('mine', join(temp.path, '.x.a-1.part'))
  expect(await failure(save(serving({ text: 'new', etag: '"a-1"' }).source, join(temp.path, 'x')))).toContain('ELOOP')
  expect(readFileSync(join(temp.path, 'mine'), 'utf8')).toBe('mine')
})

/** A tar of `steps`, files of which have the content `x`. */
function tarOf(
  steps: readonly (readonly [kind: TreeStep['kind'], name?: string, mode?: number])[],
  type?: string,
): Uint8Array {
  const form = tarForm()
  const parts = steps.flatMap(([kind, name = '', mode = 0o755]) => {
    const step = { kind, name: Buffer.from(name), mode, fd: -1, size: 1 } as TreeStep
    return kind === 'file' ? [form.headOf(step), Buffer.from('x'), form.tailOf(1)] : [form.headOf(step)]
  })
  const bytes = Buffer.concat([...parts, form.end])
  if (type === undefined) return bytes
  const at = bytes.length - form.end.length - 2 * 512
  bytes.write(type, at + 156, 'latin1')
  bytes.write('        ', at + 148, 'latin1')
  const sum = bytes.subarray(at, at + 512).reduce((all, byte) => all + byte, 0)
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148, 'latin1')
  return bytes
}

test('a directory is unpacked under its new name, and into a directory under its own', async () => {
  using temp = tempDir()
  const long = 'n'.repeat(200)
  const tar = tarOf([['enter', 'd'], ['enter', 'e'], ['file', long], ['leave'], ['file', 'a'], ['leave']])
  for (const to of [join(temp.path, 'x'), temp.path]) {
    expect(await save(ofTar(tar), to)).toMatchObject({ type: 'directory', bytes: 2, files: 2 })
  }
  for (const name of ['x', 'f']) expect(readFileSync(join(temp.path, name, 'e', long), 'utf8')).toBe('x')
  expect(await failure(save(ofTar(tar), temp.path))).toContain('there is something at')
  expect(listOf(temp)).toEqual(['f', 'x'])
})

/** The tar of a directory with a file, served in parts. */
const servedTar = (etag: string, name = 'a'): Served => ({
  ...{
    text: tarOf([['enter', 'd'], ['file', name], ['file', 'z'], ['leave']]),
    etag: `"${etag}"`,
    type: 'application/x-tar',
  },
})

test('a directory that is cut off is continued where it ended', async () => {
  using temp = tempDir()
  const { source, asked } = serving(servedTar('t'), [700, 1_000])
  const totals: unknown[] = []
  const saved = await save(source, join(temp.path, 'x'), 10, (...progress) => totals.push(progress))
  expect(saved).toEqual({ path: join(temp.path, 'x'), type: 'directory', bytes: 2, files: 2, resumed_at: 0 })
  expect(asked).toEqual(['all', '700 if "t"', '1700 if "t"'])
  expect(totals).toEqual([
    [700, 3_584],
    [1_700, 3_584],
    [3_584, 3_584],
  ])
  expect(listOf(temp)).toEqual(['x'])
  expect(readdirSync(join(temp.path, 'x')).toSorted()).toEqual(['a', 'z'])
})

test('what an earlier call has left of a directory is continued at every place, unless a file has changed', async () => {
  using temp = tempDir()
  const to = join(temp.path, 'f')
  for (let cut = 0; cut <= 3_584; cut += 256) {
    for (const [changed, expected] of [
      [servedTar('t'), { resumed_at: cut }],
      [servedTar('u', 'other'), { resumed_at: 0 }],
    ] as const) {
      expect(await failure(save(serving(servedTar('t'), [cut]).source, to, 0))).toBe('cut')
      expect(listOf(temp)).toEqual(['.f.t.tar.part'])
      expect(await save(serving(changed).source, to)).toMatchObject({ ...expected, type: 'directory', files: 2 })
      expect(listOf(temp)).toEqual(['f'])
      expect(readdirSync(to).toSorted()[0]).toBe(changed.etag === '"t"' ? 'a' : 'other')
      rmSync(to, { recursive: true })
    }
  }
})

test('a directory that changes meanwhile is read anew', async () => {
  using temp = tempDir()
  const served = servedTar('t')
  const { source } = serving(served, [1_000])
  const changing: StreamSource = {
    open: (...given) => {
      const answer = source.open(...given)
      Object.assign(served, servedTar('u', 'other'))
      return answer
    },
  }
  expect(await save(changing, temp.path)).toMatchObject({ files: 2 })
  expect(readdirSync(join(temp.path, 'f')).toSorted()).toEqual(['other', 'z'])
  expect(listOf(temp)).toEqual(['f'])
})

test('a file and a directory never continue each other', async () => {
  using temp = tempDir()
  const { text } = servedTar('t')
  expect(await failure(save(serving(servedTar('t'), [600]).source, temp.path, 0))).toBe('cut')
  expect(await save(serving({ text, etag: '"f"' }).source, temp.path)).toMatchObject({ type: 'file', resumed_at: 0 })
  expect(listOf(temp)).toEqual(['f'])
  rmSync(join(temp.path, 'f'))
  expect(await failure(save(serving({ text, etag: '"f"' }, [600]).source, temp.path, 0))).toBe('cut')
  expect(await save(serving(servedTar('t')).source, temp.path)).toMatchObject({ type: 'directory', resumed_at: 0 })
  expect(listOf(temp)).toEqual(['f'])
})

test('a directory whose place is taken is not read, and is continued once the place is free', async () => {
  using temp = tempDir()
  const to = join(temp.path, 'f')
  expect(await failure(save(serving(servedTar('t'), [600]).source, to, 0))).toBe('cut')
  writeFileSync(to, 'mine')
  expect(await failure(save(serving(servedTar('t')).source, to))).toContain('there is something at')
  expect(listOf(temp)).toEqual(['.f.t.tar.part', 'f'])
  rmSync(to)
  expect(await save(serving(servedTar('t')).source, to)).toMatchObject({ resumed_at: 600 })
})

test('a tar of an earlier version is unpacked as it comes, and begins anew', async () => {
  using temp = tempDir()
  const tar = servedTar('t').text as Uint8Array
  let opened = 0
  const source: StreamSource = {
    open: async (...given) => {
      if (opened++ > 0) return ofTar(tar).open(...given)
      const { headers, stream } = await serving({ text: tar, etag: '' }, [1_000]).source.open(given[0], {}, given[2])
      for (const name of ['etag', 'x-file-bytes', 'content-range']) headers.delete(name)
      headers.set('content-type', 'application/x-tar')
      return { headers, stream }
    },
  }
  expect(await save(source, temp.path)).toMatchObject({ type: 'directory', files: 2, resumed_at: 0 })
  expect([opened, listOf(temp)]).toEqual([2, ['f']])
})

test('what is in a directory without the right to write is saved, too', async () => {
  using temp = tempDir()
  const tar = tarOf([['enter', 'd', 0o555], ['file', 'a'], ['leave']])
  expect(await save(ofTar(tar), temp.path)).toMatchObject({ files: 1 })
  expect(statSync(join(temp.path, 'f')).mode & 0o777).toBe(0o755) // root could have written there anyway
})

test.each([
  [
    'a path that leads up',
    tarOf([
      ['enter', 'd'],
      ['enter', '..'],
      ['file', 'evil'],
    ]),
  ],
  ['a path from the root', tarOf([['file', '/evil']])],
  [
    'a name that leads up',
    tarOf([
      ['enter', 'd'],
      ['file', 'a/../../../evil'],
    ]),
  ],
  [
    'a symlink',
    tarOf(
      [
        ['enter', 'd'],
        ['file', 'evil'],
      ],
      '2',
    ),
  ],
  [
    'a hard link',
    tarOf(
      [
        ['enter', 'd'],
        ['file', 'evil'],
      ],
      '1',
    ),
  ],
  [
    'a device',
    tarOf(
      [
        ['enter', 'd'],
        ['file', 'evil'],
      ],
      '3',
    ),
  ],
  [
    'a file twice',
    tarOf([
      ['enter', 'd'],
      ['file', 'a'],
      ['file', 'a'],
    ]),
  ],
  ['a second directory', tarOf([['enter', 'd'], ['leave'], ['enter', 'evil']])],
  [
    'no end',
    tarOf([
      ['enter', 'd'],
      ['file', 'a'],
    ]).subarray(0, 1_100),
  ],
  ['other bytes', new Uint8Array(2_048).fill(65)],
])('a tar with %s is refused, and leaves nothing', async (_, tar) => {
  using temp = tempDir()
  const inner = join(temp.path, 'inner')
  mkdirSync(inner)
  const served = serving({ text: tar, etag: '"t"', type: 'application/x-tar' }).source
  for (const source of [ofTar(tar), served]) {
    expect(await failure(save(source, join(inner, 'x'), 0))).not.toBe('saved')
    expect(readdirSync(inner)).toEqual([])
  }
  expect(listOf(temp)).toEqual(['inner'])
  expect(existsSync('/evil')).toBe(false)
})

/**
 * Goal: a bundle holds what a copy within one service would, with the same hash, and no bytes from elsewhere lead out of the
 * target. Method: trees that are bundled and written again; bundles with a fault each; random changes of a valid one.
 */
import { expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { archiveChunks, archiveOutline, bundleChunks, bundleDigest, bundleSize } from '../../../runtime/files/bundle.ts'
import { copyBundle } from '../../../runtime/files/bundle-copy.ts'
import { OpenDirectory } from '../../../runtime/files/open-directory.ts'
import { tarForm } from '../../../runtime/files/tar.ts'
import { taskDirAt } from '../../../runtime/files/task-dir.ts'
import { copyWalked } from '../../../runtime/files/tree-copy.ts'
import { CopyAmount, CopyFault, type TreeWalk } from '../../../runtime/files/tree-walk.ts'
import { walkWorkspace } from '../../../runtime/files/workspace-walk.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const LIMITS = { files: 100, bytes: 10_000_000 }
const check = () => {}
const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

/** A task whose workspace has a tree in `d`. */
function made(temp: TempDir) {
  const dir = taskDirAt(join(temp.path, 'task'))
  const top = join(dir.workspace, 'd')
  mkdirSync(join(top, 'deep/er'), { recursive: true })
  mkdirSync(join(top, 'empty'))
  writeFileSync(join(top, 'a'), 'one')
  writeFileSync(join(top, 'deep/er/ü \n'), 'two')
  writeFileSync(join(top, 'large'), Buffer.alloc(700_000, 'x'))
  writeFileSync(join(top, 'holes'), 'x')
  truncateSync(join(top, 'holes'), 3_000_000)
  writeFileSync(Buffer.from(`${top}/\xff`, 'latin1'), 'no text')
  chmodSync(join(top, 'a'), 0o4751)
  chmodSync(join(top, 'deep'), 0o750)
  symlinkSync('/', join(top, 'link'))
  const walk = (file: string, as = Buffer.of()): { walk: TreeWalk; amount: CopyAmount } => {
    const amount = new CopyAmount(LIMITS)
    return { walk: walkWorkspace(dir, file, as, { amount, check }), amount }
  }
  const bytesOf = async (file: string) => {
    const { walk: steps, amount } = walk(file)
    const chunks: Buffer[] = []
    for await (const chunk of bundleChunks(steps, { amount, check })) chunks.push(Buffer.from(chunk))
    return Buffer.concat(chunks)
  }
  return { top, walk, bytesOf }
}

/** Writes a bundle to the new directory `name`, as `in`. */
async function written(temp: TempDir, name: string, bytes: Buffer, expected = sha256(bytes), limits = LIMITS) {
  const path = join(temp.path, `${name}.bundle`)
  writeFileSync(path, bytes)
  mkdirSync(join(temp.path, name))
  using target = OpenDirectory.open(join(temp.path, name))
  const fd = openSync(path, 'r')
  try {
    const settings = { owner: undefined, amount: new CopyAmount(limits), check }
    return await copyBundle({ fd, sha256: expected }, target, Buffer.from('in'), settings)
  } finally {
    closeSync(fd)
  }
}

test('has what a copy has, with the same hash, and the same bytes each time', async () => {
  using temp = tempDir()
  const { walk, bytesOf } = made(temp)
  for (const file of ['d', 'd/a', '.', 'd/empty', 'd/holes']) {
    const bytes = await bytesOf(file)
    const { walk: steps, amount } = walk(file)
    expect(await bundleSize(walk(file).walk)).toMatchObject({ bytes: bytes.length })
    expect(await bundleDigest(steps, { amount, check })).toMatchObject({ bytes: bytes.length, sha256: sha256(bytes) })
    const name = file.replaceAll('/', '-').replace('.', 'all')
    mkdirSync(join(temp.path, `copy-${name}`))
    using target = OpenDirectory.open(join(temp.path, `copy-${name}`))
    const copy = walk(file, Buffer.from('in'))
    const clone = async () => false
    const copied = await copyWalked(copy.walk, target, { owner: undefined, amount: copy.amount, clone, check })
    expect(await written(temp, name, bytes)).toEqual(copied)
  }
  const at = join(temp.path, 'd/in')
  expect(readdirSync(at, { recursive: true, encoding: 'latin1' as 'utf8' }).length).toBe(8)
  expect(existsSync(join(at, 'link'))).toBe(false)
  expect(statSync(join(at, 'a')).mode & 0o7777).toBe(0o751)
  expect(statSync(join(at, 'deep')).mode & 0o7777).toBe(0o750)
  expect(readFileSync(join(at, 'deep/er/ü \n'), 'utf8')).toBe('two')
  expect(readFileSync(Buffer.from(`${at}/\xff`, 'latin1'), 'utf8')).toBe('no text')
  const { size, blocks } = statSync(join(at, 'holes'))
  expect([size, blocks * 512 < 1_000_000]).toEqual([3_000_000, true])
})

test('of a file that becomes shorter while it is read ends with a fault', async () => {
  using temp = tempDir()
  const { top, walk } = made(temp)
  const { walk: steps, amount } = walk('d/large')
  const chunks = bundleChunks(steps, { amount, check })
  await chunks.next()
  truncateSync(join(top, 'large'), 10)
  const rest = async () => {
    for await (const _ of chunks);
  }
  await expect(rest()).rejects.toThrow('became shorter while it was read')
})

const START = 'taskmill-bundle 1\n'
const ONE = 'file 644 3 \0one'

test.each([
  ['nothing', '', 'another beginning'],
  ['another format', `PK${ONE}`, 'another beginning'],
  ['no entry', START, 'an entry without an end'],
  ['an entry without an end', `${START}file 644 3 ${'x'.repeat(400)}`, 'an entry without an end'],
  ['another kind', `${START}link 777 \0`, 'an entry that is neither a file nor a directory'],
  ['a set-uid bit', `${START}file 4755 0 \0`, 'an entry that is neither'],
  ['two spellings of a number', `${START}file 644 03 \0one`, 'an entry that is neither'],
  ['a negative size', `${START}file 644 -3 \0one`, 'an entry that is neither'],
  ['a name outside', `${START}file 644 3 x\0one`, 'the outermost entry has a name'],
  ['a file that is cut', `${START}file 644 4 \0one`, 'a file that is not complete'],
  ['a huge file', `${START}file 644 9007199254740991 \0one`, 'too much'],
  ['a second entry', `${START}${ONE}${ONE}`, 'more than one outermost entry'],
  ['an end too much', `${START}${ONE}end\0`, 'more than one outermost entry'],
  ['only an end', `${START}end\0`, 'an end without a directory'],
  ['a directory without an end', `${START}directory 755 \0`, 'an entry without an end'],
  ['an empty name', `${START}directory 755 \0file 644 0 \0end\0`, 'a name that is none'],
  ['a path', `${START}directory 755 \0file 644 0 a/b\0end\0`, 'a name that is none'],
  ['an absolute path', `${START}directory 755 \0file 644 0 /etc/x\0end\0`, 'a name that is none'],
  ['the directory itself', `${START}directory 755 \0directory 755 .\0end\0end\0`, 'a name that is none'],
  ['the one above', `${START}directory 755 \0directory 755 ..\0end\0end\0`, 'a name that is none'],
  ['a long name', `${START}directory 755 \0file 644 0 ${'x'.repeat(256)}\0end\0`, 'a name that is too long'],
  ['a name twice', `${START}directory 755 \0file 644 0 a\0file 644 0 a\0end\0`, 'names that are not in order'],
  ['names in no order', `${START}directory 755 \0file 644 0 b\0file 644 0 a\0end\0`, 'names that are not in order'],
  ['many levels', `${START}directory 755 \0${'directory 755 d\0'.repeat(70)}`, 'directories deep'],
  ['many entries', `${START}directory 755 \0${many(101)}end\0`, 'too much'],
])('with %s is refused', async (_, text, fault) => {
  using temp = tempDir()
  await expect(written(temp, 'to', Buffer.from(text, 'latin1'))).rejects.toThrow(fault)
  expect(readdirSync(temp.path).toSorted()).toEqual(['to', 'to.bundle'])
})

function many(count: number): string {
  return Array.from({ length: count }, (_, i) => `file 644 0 ${String(i).padStart(4, '0')}\0`).join('')
}

test('with other bytes than its name says is refused', async () => {
  using temp = tempDir()
  await expect(written(temp, 'to', Buffer.from(START + ONE), '0'.repeat(64))).rejects.toThrow('is damaged')
})

test('that was changed anywhere is written below its target or refused', async () => {
  using temp = tempDir()
  const { bytesOf } = made(temp)
  const valid = (await bytesOf('d/deep')).toString('latin1')
  let count = 0
  await fc.assert(
    fc.asyncProperty(
      fc.nat(valid.length),
      fc.nat(6),
      fc.constantFrom('', '\0', '/', '..', 'end\0', 'file 644 0 x\0', 'directory 755 y\0', ' 7'),
      async (at, removed, added) => {
        const name = `r${count++}`
        const bytes = Buffer.from(valid.slice(0, at) + added + valid.slice(at + removed), 'latin1')
        await written(temp, name, bytes).catch((error) => expect(error).toBeInstanceOf(CopyFault))
        expect(readdirSync(join(temp.path, name)).every((entry) => entry === 'in')).toBe(true)
      },
    ),
    { numRuns: 200 },
  )
  expect(readdirSync(temp.path).length).toBe(2 * count + 1)
})

test('a tar has the same tree for the programs that read it', async () => {
  using temp = tempDir()
  const { top, walk } = made(temp)
  const deep = join(top, 'n'.repeat(90), 'm'.repeat(90))
  mkdirSync(deep, { recursive: true })
  writeFileSync(join(deep, 'ü'.repeat(60)), 'far')
  const { walk: steps, amount } = walk('d', Buffer.from('d'))
  const chunks: Buffer[] = []
  for await (const chunk of archiveChunks(steps, { amount, check }, tarForm())) chunks.push(Buffer.from(chunk))
  expect((await archiveOutline(...outlined(walk))).bytes).toBe(Buffer.concat(chunks).length)
  mkdirSync(join(temp.path, 'out'))
  const tar = Bun.spawnSync(['tar', '-xf', '-', '-C', join(temp.path, 'out')], { stdin: Buffer.concat(chunks) })
  expect([tar.exitCode, tar.stderr.toString()]).toEqual([0, ''])
  const diff = Bun.spawnSync(['diff', '-r', '--no-dereference', top, join(temp.path, 'out', 'd')])
  expect(diff.stdout.toString().trim()).toBe(`Only in ${top}: link`)
  expect(statSync(join(temp.path, 'out/d/a')).mode & 0o7777).toBe(0o751)
})

/** A workspace with all that a tar has in a form of its own. */
function madeForParts(temp: TempDir) {
  const { top, walk } = made(temp)
  const deep = join(top, 'n'.repeat(90), 'm'.repeat(90))
  mkdirSync(deep, { recursive: true })
  for (const size of [0, 1, 511, 512, 513, 1_024])
    writeFileSync(join(deep, `size ${size}`), Buffer.alloc(size, `${size}`))
  for (const length of [98, 99, 100, 101, 255]) writeFileSync(join(top, 'l'.repeat(length)), `${length}`)
  return { walk }
}

type Walked = ReturnType<ReturnType<typeof made>['walk']>

const outlined = (walk: (file: string, as: Buffer<ArrayBuffer>) => Walked) => {
  const { walk: steps, amount } = walk('d', Buffer.from('d'))
  return [steps, { amount, check }, tarForm()] as const
}

async function partOf(walk: Parameters<typeof outlined>[0], part?: Parameters<typeof archiveChunks>[3]) {
  const chunks: Buffer[] = []
  for await (const chunk of archiveChunks(...outlined(walk), part)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

test('each part of a tar is a part of the whole', async () => {
  using temp = tempDir()
  const { walk } = madeForParts(temp)
  const outline = await archiveOutline(...outlined(walk))
  const whole = await partOf(walk)
  expect(outline.bytes).toBe(whole.length)
  const isPart = async (from: number, to: number) => {
    const part = await partOf(walk, { outline, from, to })
    expect([from, to, part.length, part.equals(whole.subarray(from, to))]).toEqual([from, to, to - from, true])
  }
  await isPart(0, whole.length)
  const place = fc.oneof(
    fc.nat(whole.length),
    fc.nat(whole.length / 512).chain((block) => fc.integer({ min: -1, max: 1 }).map((more) => block * 512 + more)),
  )
  await fc.assert(
    fc.asyncProperty(place, place, async (one, other) => {
      const [from, to] = [Math.max(0, Math.min(one, other)), Math.min(whole.length, Math.max(one, other))]
      if (from < to) await isPart(from, to)
    }),
    { numRuns: 200 },
  )
})

test('a part reads only the files that are in it', async () => {
  using temp = tempDir()
  const { walk } = madeForParts(temp)
  const outline = await archiveOutline(...outlined(walk))
  const { walk: steps, amount } = walk('d', Buffer.from('d'))
  const from = outline.bytes - 1_024 - 512
  const chunks = archiveChunks(steps, { amount, check }, tarForm(), { outline, from, to: from + 12 })
  expect((await chunks.next()).value?.toString('latin1')).toBe('no text'.padEnd(12, '\0'))
  await chunks.return()
  expect(amount.bytes).toBe('no text'.length)
})

const CHANGES: readonly (readonly [string, (top: string) => void])[] = [
  ['is written, with the same size', (top) => writeFileSync(join(top, 'a'), 'eno')],
  [
    'is written, with the same size and time',
    (top) => {
      const { atime, mtime } = statSync(join(top, 'a'))
      writeFileSync(join(top, 'a'), 'eno')
      utimesSync(join(top, 'a'), atime, mtime)
    },
  ],
  ['becomes longer', (top) => writeFileSync(join(top, 'a'), 'longer')],
  ['gets other permissions', (top) => chmodSync(join(top, 'a'), 0o600)],
  [
    'is replaced',
    (top) => {
      rmSync(join(top, 'a'))
      writeFileSync(join(top, 'a'), 'eno')
    },
  ],
  ['is added', (top) => writeFileSync(join(top, 'b'), '')],
  ['is added at the end', (top) => writeFileSync(Buffer.from(`${top}/\xff\xff`, 'latin1'), '')],
  ['is removed', (top) => rmSync(join(top, 'a'))],
  ['is removed at the end', (top) => rmSync(Buffer.from(`${top}/\xff`, 'latin1'))],
]

test.each(CHANGES)(
  'a tar of which a file %s after the walk ends with a fault, and has another hash',
  async (_, change) => {
    using temp = tempDir()
    const { top, walk } = made(temp)
    const outline = await archiveOutline(...outlined(walk))
    await clockMoves(temp)
    change(top)
    await expect(partOf(walk, { outline, from: 0, to: outline.bytes })).rejects.toThrow('changed while it was read')
    expect((await archiveOutline(...outlined(walk))).hash).not.toBe(outline.hash)
  },
)

test.each([
  ['written', (path: string) => writeFileSync(path, Buffer.alloc(700_000, 'y'))],
  ['cut', (path: string) => truncateSync(path, 10)],
])('a tar of a file that is %s while it is read ends with a fault', async (_, change) => {
  using temp = tempDir()
  const { top, walk } = made(temp)
  const outline = await archiveOutline(...outlined(walk))
  await clockMoves(temp)
  const part = { outline, from: outline.bytes - 600_000, to: outline.bytes - 100_000 }
  const chunks = archiveChunks(...outlined(walk), part)
  await chunks.next()
  change(join(top, 'large'))
  const rest = async () => {
    for await (const _ of chunks);
  }
  await expect(rest()).rejects.toThrow('changed while it was read')
})

/** Until a file that is written now has another time than those before. */
async function clockMoves(temp: TempDir): Promise<void> {
  const now = () => {
    writeFileSync(join(temp.path, 'clock'), '')
    return statSync(join(temp.path, 'clock')).ctimeMs
  }
  const before = now()
  await until(now, (time) => time > before)
}

test('a tar with more bytes than may be read is refused before the first one', async () => {
  using temp = tempDir()
  const { top, walk } = made(temp)
  truncateSync(join(top, 'holes'), LIMITS.bytes - 100)
  await expect(archiveOutline(...outlined(walk))).rejects.toThrow('has too much')
})

test('a tar tells the size of a file of 8 GiB and more', () => {
  const size = 3 * 8 ** 11 + 5
  const head = tarForm().headOf({ kind: 'file', name: Buffer.from('f'), mode: 0o644, fd: -1, size, version: '' })
  const tar = Bun.spawnSync(['tar', '-tvf', '-'], { stdin: head, env: { ...process.env, LC_ALL: 'C' } })
  expect(tar.stdout.toString()).toContain(` ${size} `)
})

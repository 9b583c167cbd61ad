/**
 * Goal: a staged bundle is whole, limits hold, and what is not needed goes. Method: bodies with faults, several at a time, and
 * services that come after each other in one directory.
 */
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { StagedFiles } from '../../../runtime/files/staged-files.ts'
import { stagedForTasks } from '../../../runtime/tasks/inputs.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

const sha256 = (text: string) => new Bun.CryptoHasher('sha256').update(text).digest('hex')
const HOUR_MS = 3_600_000

async function* bodyOf(...chunks: readonly string[]) {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

function open(temp: TempDir, { bundle = 100, all = 200, needed = [] as string[] } = {}) {
  const staged = new StagedFiles({
    ...{ dataDir: temp.path, directory: { ensure() {} }, limits: { bundle, all } },
    needed: () => new Set(needed.map(sha256)),
  })
  const put = (text: string) => staged.receive(sha256(text), bodyOf(text), () => {})
  return { staged, put }
}

const names = ({ path }: TempDir) => readdirSync(join(path, 'staged')).toSorted()

/** Makes a bundle look as if it was last used so many hours ago. */
function age({ path }: TempDir, text: string, hours: number): void {
  const at = new Date(Date.now() - hours * HOUR_MS)
  utimesSync(join(path, 'staged', sha256(text)), at, at)
}

test('a bundle is there under its hash, for this service and the next one', async () => {
  using temp = tempDir()
  const { staged, put } = open(temp)
  expect(existsSync(join(temp.path, 'staged'))).toBe(false)
  expect(await put('one')).toBe(3)
  expect(await Promise.all([put('two!'), put('two!')])).toEqual([4, 4])
  expect([staged.count, staged.bytes]).toEqual([2, 7])
  expect(names(temp)).toEqual([sha256('one'), sha256('two!')].toSorted())
  const { mode } = statSync(join(temp.path, 'staged', sha256('one')))
  expect([mode & 0o777, statSync(join(temp.path, 'staged')).mode & 0o777]).toEqual([0o600, 0o700])
  const next = open(temp).staged
  expect([next.use(sha256('one')), next.use(sha256('none')), next.bytes]).toEqual([3, undefined, 7])
})

test.each([
  ['of another hash', ['other'], 'the body has another hash than its address: its sha256 is'],
  ['that is empty', [], 'the body has another hash'],
  ['that is too long', ['one', 'x'.repeat(98)], 'the bundle has more than 100 bytes'],
])('a body %s is refused, and nothing of it is left', async (_, chunks, fault) => {
  using temp = tempDir()
  const { staged } = open(temp)
  await expect(staged.receive(sha256('one'), bodyOf(...chunks), () => {})).rejects.toThrow(fault)
  expect([staged.bytes, staged.use(sha256('one')), names(temp)]).toEqual([0, undefined, []])
})

test('a body that breaks off leaves nothing, and its error stays', async () => {
  using temp = tempDir()
  const { staged } = open(temp)
  const broken = async function* () {
    yield Buffer.from('one')
    throw new Error('gone')
  }
  await expect(staged.receive(sha256('one'), broken(), () => {})).rejects.toThrow('gone')
  expect([staged.bytes, names(temp)]).toEqual([0, []])
})

test('the rest of an earlier service goes, and what is no bundle is never taken for one', async () => {
  using temp = tempDir()
  const { put } = open(temp)
  await put('one')
  const path = join(temp.path, 'staged')
  writeFileSync(join(path, 'half.part'), 'x')
  writeFileSync(join(path, 'notes'), 'x')
  symlinkSync('/etc/passwd', join(path, sha256('link')))
  mkdirSync(join(path, sha256('directory')))
  const next = open(temp).staged
  expect(names(temp)).not.toContain('half.part')
  expect([next.count, next.open(sha256('directory')), next.open(sha256('link'))]).toEqual([1, undefined, undefined])
})

test('bundles that were used long ago make room, but not those that a task needs or that just came', async () => {
  using temp = tempDir()
  const texts = ['a', 'b', 'c'].map((name) => name.repeat(60))
  for (const text of texts) await open(temp).put(text)
  for (const [i, text] of texts.entries()) age(temp, text, 3 - i)
  const { staged, put } = open(temp, { needed: [texts[0]!] })
  await put('d'.repeat(60))
  expect(texts.map((text) => staged.use(sha256(text)))).toEqual([60, undefined, 60])
  await expect(put('e'.repeat(60))).rejects.toThrow(
    'there is no room for the bundle: all staged files may have 200 bytes (--max-staged-bytes)',
  )
  expect([staged.bytes, names(temp).length]).toEqual([180, 3])
})

test('a sweep removes what was not used for long, unless a task needs it', async () => {
  using temp = tempDir()
  const texts = ['old', 'needed', 'new']
  for (const text of texts) await open(temp).put(text)
  age(temp, 'old', 2)
  age(temp, 'needed', 2)
  const { staged } = open(temp, { needed: ['needed'] })
  expect(staged.sweep(Date.now() - HOUR_MS)).toBe(1)
  expect(texts.map((text) => staged.use(sha256(text)))).toEqual([undefined, 6, 3])
  expect(names(temp)).toEqual([sha256('needed'), sha256('new')].toSorted())
})

test('tasks need the bundles of their inputs until they have started', () => {
  const row = (inputs: object | null, started_at: number | null) =>
    ({ row: { inputs: inputs && JSON.stringify(inputs), started_at } }) as never
  const live = [
    row({ a: { staged: 'x' }, b: { task_id: 't', file: 'f' } }, null),
    row({ a: { staged: 'y' } }, 1),
    row(null, null),
  ]
  expect([...stagedForTasks(live)]).toEqual(['x'])
})

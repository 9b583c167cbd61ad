/** The executor file. Source: spec, Task executors; contract, Executors and section 5. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { type Control, startControl } from '../support/control.ts'
import { type TempDir, tempDir } from '../support/temp.ts'

let temp: TempDir
/** Holds `work` and what lies outside of it. */
let outside: string
let root: string
/** Works in `work`, without a file root. */
let free: Control
/** Has `work` as its file root. */
let rooted: Control
/** A new, empty directory in `work`, for each test. */
let dir: string
beforeAll(async () => {
  temp = tempDir()
  outside = temp.path
  root = join(temp.path, 'work')
  mkdirSync(root)
  free = await startControl({ cwd: root })
  rooted = await startControl({ flags: ['--file-root', root] })
})
afterAll(async () => {
  await free.dispose()
  await rooted.dispose()
  temp[Symbol.dispose]()
})
beforeEach(() => {
  dir = mkdtempSync(join(root, 'test-'))
})

const run = (params: object, service = free) => service.run({ type: 'file', params })
const text = (path: string) => readFileSync(path, 'utf8')

const failure = (code: string, error: unknown = expect.any(String)) => ({
  status: 'failed',
  error,
  runtime: { error: { code } },
})
const ESCAPES = failure('denied', 'path escapes the file root')

describe('write', () => {
  test('creates the file with its directories, and says the bytes it wrote', async () => {
    const path = join(dir, 'a/b/c/file.txt')
    const task = await run({ action: 'write', path, content: 'grün €' })
    expect(task).toMatchObject({ status: 'success', result: { bytes_written: 9 } })
    expect(text(path)).toBe('grün €')
  })

  test('replaces what was there', async () => {
    const path = join(dir, 'file')
    writeFileSync(path, 'a much longer text than the new one')
    expect((await run({ action: 'write', path, content: 'short' })).result).toEqual({ bytes_written: 5 })
    expect(text(path)).toBe('short')
  })

  test.each([{}, { content: '' }, { content: null }])('without content makes an empty file: %j', async (content) => {
    const path = join(dir, 'empty')
    expect((await run({ action: 'write', path, ...content })).result).toEqual({ bytes_written: 0 })
    expect(text(path)).toBe('')
  })
})

describe('append', () => {
  test('adds to the end, and creates the file with its directories', async () => {
    const path = join(dir, 'x/y/log')
    for (const content of ['one\n', 'zwölf\n']) {
      const task = await run({ action: 'append', path, content })
      expect(task).toMatchObject({ status: 'success', result: { bytes_written: Buffer.byteLength(content) } })
    }
    expect(text(path)).toBe('one\nzwölf\n')
  })
})

describe('read', () => {
  test('gives content and size', async () => {
    const path = join(dir, 'file')
    writeFileSync(path, 'grün €\n')
    expect(await run({ action: 'read', path })).toMatchObject({
      status: 'success',
      result: { content: 'grün €\n', size: 10 },
    })
  })

  test('of an empty file', async () => {
    writeFileSync(join(dir, 'empty'), '')
    expect((await run({ action: 'read', path: join(dir, 'empty') })).result).toEqual({ content: '', size: 0 })
  })

  test('of a file below /proc, which says that it is empty, gives what is in it', async () => {
    const { status, result } = await run({ action: 'read', path: '/proc/version' })
    expect(status).toBe('success')
    expect(result).toEqual({ content: text('/proc/version'), size: Buffer.byteLength(text('/proc/version')) })
  })

  test('of a missing file fails with not_found', async () => {
    expect(await run({ action: 'read', path: join(dir, 'missing') })).toMatchObject(failure('not_found'))
  })

  test('of a directory fails with external_failure', async () => {
    expect(await run({ action: 'read', path: dir })).toMatchObject(failure('external_failure'))
  })

  test.each(['read', 'write', 'append'])('of a pipe fails and does not hang: %s', async (action) => {
    const path = join(dir, 'fifo')
    expect(Bun.spawnSync(['mkfifo', path]).exitCode).toBe(0)
    expect(await run({ action, path, content: 'x' })).toMatchObject(failure('external_failure'))
    expect(lstatSync(path).isFIFO()).toBe(true)
  })

  test('of a device without an end fails and does not hang', async () => {
    expect(await run({ action: 'read', path: '/dev/zero' })).toMatchObject({ status: 'failed' })
  })

  test('through a path that goes on below a file fails with external_failure', async () => {
    writeFileSync(join(dir, 'file'), '')
    expect(await run({ action: 'read', path: join(dir, 'file/below') })).toMatchObject(failure('external_failure'))
  })
})

describe('delete', () => {
  test('removes the file', async () => {
    const path = join(dir, 'file')
    writeFileSync(path, '')
    expect(await run({ action: 'delete', path })).toMatchObject({ status: 'success', result: { deleted: true } })
    expect(existsSync(path)).toBe(false)
  })

  test('of a missing file fails with not_found', async () => {
    expect(await run({ action: 'delete', path: join(dir, 'missing') })).toMatchObject(failure('not_found'))
  })

  test('of a directory with something in it fails and leaves it', async () => {
    mkdirSync(join(dir, 'full'))
    writeFileSync(join(dir, 'full/file'), 'x')
    expect(await run({ action: 'delete', path: join(dir, 'full') })).toMatchObject(failure('external_failure'))
    expect(text(join(dir, 'full/file'))).toBe('x')
  })

  test('of a link removes the link, not what it leads to', async () => {
    writeFileSync(join(dir, 'target'), 'x')
    symlinkSync('target', join(dir, 'link'))
    expect((await run({ action: 'delete', path: join(dir, 'link') })).status).toBe('success')
    expect(existsSync(join(dir, 'link'))).toBe(false)
    expect(text(join(dir, 'target'))).toBe('x')
  })
})

describe('stat', () => {
  test('of a file: name, size, mode, mod_time, is_dir', async () => {
    const path = join(dir, 'file')
    writeFileSync(path, 'hello')
    chmodSync(path, 0o644)
    expect((await run({ action: 'stat', path })).result).toEqual({
      name: 'file',
      size: 5,
      mode: '-rw-r--r--',
      mod_time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/),
      is_dir: false,
    })
    const { mod_time } = (await run({ action: 'stat', path })).result as { mod_time: string }
    expect(Math.abs(Date.parse(mod_time) - statSync(path).mtimeMs)).toBeLessThan(1000)
  })

  test('of a directory', async () => {
    chmodSync(dir, 0o750)
    expect((await run({ action: 'stat', path: dir })).result).toMatchObject({
      name: basename(dir),
      mode: 'drwxr-x---',
      is_dir: true,
    })
  })

  test.each([
    ['/', '/', 'd'],
    ['/dev/null', 'null', 'c'],
  ])('of %s: the name %s, and a mode that begins with %s', async (path, name, kind) => {
    const { result } = await run({ action: 'stat', path })
    expect(result).toMatchObject({ name })
    expect((result as { mode: string }).mode).toStartWith(`${kind}rw`)
  })

  test('of a missing file fails with not_found', async () => {
    expect(await run({ action: 'stat', path: join(dir, 'missing') })).toMatchObject(failure('not_found'))
  })
})

describe('parameters', () => {
  test.each(['copy', 'READ', '', 'constructor', '__proto__', ' read'])(
    'any other action fails the task: %j',
    async (action) => {
      const error = `unknown action "${action}" (supported: read, write, append, delete, stat)`
      expect(await run({ action, path: join(dir, 'file') })).toMatchObject(failure('invalid_input', error))
    },
  )

  test.each([{}, { path: '' }, { path: null }])('path is required: %j', async (path) => {
    expect(await run({ action: 'read', ...path })).toMatchObject(failure('invalid_input', 'path is required'))
  })
})

describe('without --file-root', () => {
  test('relative paths resolve against the working directory', async () => {
    expect((await run({ action: 'write', path: 'relative/../relative/./file', content: 'x' })).status).toBe('success')
    expect(text(join(root, 'relative/file'))).toBe('x')
  })

  test.each(['../file', './../x/y'])('a relative path that leaves the working directory fails: %s', async (path) => {
    for (const action of ['read', 'write', 'append', 'delete', 'stat']) {
      expect(await run({ action, path, content: 'x' })).toMatchObject(ESCAPES)
    }
    expect(existsSync(join(root, path, 'y'))).toBe(false)
  })
})

describe('with --file-root', () => {
  const tryAll = async (path: string) => {
    const outcomes = []
    for (const action of ['read', 'write', 'append', 'stat']) {
      outcomes.push(await run({ action, path, content: 'changed' }, rooted))
    }
    return outcomes
  }

  test('relative paths resolve against it, wherever the service works', async () => {
    expect((await run({ action: 'write', path: 'from-root/file', content: 'x' }, rooted)).status).toBe('success')
    expect(text(join(root, 'from-root/file'))).toBe('x')
  })

  test.each(['/etc/passwd', '../secret'])('paths may not leave it: %s', async (path) => {
    for (const task of await tryAll(path)) expect(task).toMatchObject(ESCAPES)
    expect(await run({ action: 'delete', path }, rooted)).toMatchObject(ESCAPES)
  })

  test('a symlink to a file outside may not be followed', async () => {
    writeFileSync(join(outside, 'secret'), 'kept')
    symlinkSync(join(outside, 'secret'), join(dir, 'link'))
    for (const task of await tryAll(join(dir, 'link'))) expect(task).toMatchObject(ESCAPES)
    await run({ action: 'delete', path: join(dir, 'link') }, rooted)
    expect(text(join(outside, 'secret'))).toBe('kept')
  })
})

/**
 * Goal: file tasks stay where they may be. Method: a root with a neighbour that holds a secret; every way from one to
 * the other that names and links allow, and random paths, must end inside or be denied.
 */
import { describe, expect, test } from 'bun:test'
import { constants, existsSync, mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import fc from 'fast-check'
import { ExecutionError } from '../../../control/executors/executor.ts'
import { FileRoot } from '../../../control/executors/os/file-root.ts'
import { UsageError } from '../../../shared/contract/errors.ts'
import { tempDir } from '../../support/temp.ts'

const { O_CREAT, O_RDONLY, O_WRONLY } = constants

/** `root/` with files and links in all directions, and `outside/` beside it, whose name begins as that of the root. */
function places() {
  const dir = tempDir()
  const path = (...parts: string[]) => join(dir.path, ...parts)
  mkdirSync(path('root', 'sub', 'deep'), { recursive: true })
  mkdirSync(path('root-outside'))
  writeFileSync(path('root', 'file'), 'inside')
  writeFileSync(path('root', 'sub', 'file'), 'inside')
  writeFileSync(path('root-outside', 'secret'), 'outside')
  const links: Record<string, string> = {
    'link-to-file': 'file',
    'link-to-sub': 'sub',
    'link-to-secret': '../root-outside/secret',
    'link-to-outside': path('root-outside'),
    'link-to-parent': '..',
    'link-to-root': path('root'),
    'link-to-nowhere': 'not-there',
    'link-to-nowhere-outside': '../root-outside/not-there',
    'link-to-itself': 'link-to-itself',
    'sub/link-up': '../file',
    'sub/deep/link-out': '../../../root-outside/secret',
  }
  for (const [link, target] of Object.entries(links)) symlinkSync(target, path('root', link))
  return {
    path,
    base: path('root'),
    confined: new FileRoot(path('root')),
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  }
}

/** The error code that `work` comes to, or what it gave. */
async function outcomeOf<T>(work: Promise<T>): Promise<T | string> {
  try {
    return await work
  } catch (error) {
    if (error instanceof ExecutionError) return error.message
    return String((error as { code?: unknown }).code)
  }
}

const ESCAPES = 'path escapes the file root'

describe('under a file root', () => {
  test.each([
    ['file', 'file'],
    ['./sub/../file', 'file'],
    ['sub//file', 'sub/file'],
    ['', ''],
    ['.', ''],
    ['sub/..', ''],
    ['..file', '..file'],
    ['.../x', '.../x'],
    ['new/deeper/file', 'new/deeper/file'],
    ['sub/new', 'sub/new'],
    ['link-to-file', 'file'],
    ['link-to-sub/file', 'sub/file'],
    ['link-to-sub/new', 'sub/new'],
    ['link-to-sub/link-up', 'file'],
    ['link-to-root/link-to-root/file', 'file'],
  ])('%j is %j', async (path, place) => {
    using there = places()
    expect(await there.confined.locate(path)).toBe(join(there.base, place))
    expect(await there.confined.locate(join(there.base, path))).toBe(join(there.base, place))
  })

  test.each([
    '..',
    '../root-outside/secret',
    'sub/../../root-outside/secret',
    '../root-outside',
    '../rootfile',
    '../../../../../../../../etc/passwd',
    '/etc/passwd',
    '/',
    'link-to-secret',
    'link-to-outside',
    'link-to-outside/secret',
    'link-to-outside/new',
    'link-to-parent',
    'link-to-parent/root-outside/secret',
    'link-to-root/link-to-parent',
    'sub/deep/link-out',
    'link-to-nowhere',
    'link-to-nowhere/below',
    'link-to-nowhere-outside',
  ])('%j is denied, to look at and to open', async (path) => {
    using there = places()
    expect(await outcomeOf(there.confined.locate(path))).toBe(ESCAPES)
    expect(await outcomeOf(there.confined.open(path, O_RDONLY))).toBe(ESCAPES)
    expect(await outcomeOf(there.confined.open(path, O_WRONLY | O_CREAT))).toBe(ESCAPES)
    expect(readdirSync(there.path('root-outside'))).toEqual(['secret'])
    expect(existsSync(there.path('root', 'not-there'))).toBe(false)
  })

  test('the absolute path of a neighbour is denied although it begins as the root does', async () => {
    using there = places()
    expect(await outcomeOf(there.confined.locate(there.path('root-outside', 'secret')))).toBe(ESCAPES)
  })

  test('a link that leads to itself leads nowhere', async () => {
    using there = places()
    expect(await outcomeOf(there.confined.open('link-to-itself', O_RDONLY))).toBe('ELOOP')
  })

  test('whatever the path, it ends inside or is denied', async () => {
    using there = places()
    const part = fc.constantFrom(
      ...[
        '..',
        '..',
        '.',
        '',
        'file',
        'sub',
        'deep',
        'root',
        'root-outside',
        'secret',
        'new',
        'link-to-sub',
        'link-up',
      ],
      ...['link-to-parent', 'link-to-root', 'link-to-outside', 'link-to-secret', 'link-out', 'link-to-nowhere'],
    )
    const paths = fc
      .tuple(
        fc.constantFrom('', '/', `${there.base}/`, `${there.path('root-outside')}/`),
        fc.array(part, { maxLength: 7 }),
      )
      .map(([start, parts]) => start + parts.join('/'))
    let located = 0
    let denied = 0
    await fc.assert(
      fc.asyncProperty(paths, async (path) => {
        const found = await outcomeOf(there.confined.locate(path))
        if (found === ESCAPES) {
          denied++
          return
        }
        if (found === 'ENOTDIR') return
        located++
        expect(relative(there.base, found).split('/')).not.toContain('..')
        expect(found.startsWith('/')).toBe(true)
        // What is there already is itself, and not a link to somewhere else.
        if (existsSync(found)) expect(realpathSync(found)).toBe(found)
      }),
      { numRuns: 1_000 },
    )
    expect(located).toBeGreaterThan(50)
    expect(denied).toBeGreaterThan(50)
  })

  test('an entry to remove is taken as it is, links and all, but not the root itself', async () => {
    using there = places()
    const entry = (path: string) => outcomeOf(there.confined.locateEntry(path))
    expect(await entry('file')).toBe(join(there.base, 'file'))
    expect(await entry('link-to-secret')).toBe(join(there.base, 'link-to-secret'))
    expect(await entry('link-to-nowhere')).toBe(join(there.base, 'link-to-nowhere'))
    expect(await entry('link-to-sub/link-up')).toBe(join(there.base, 'sub', 'link-up'))
    expect(await entry('link-to-outside/secret')).toBe(ESCAPES)
    expect(await entry('link-to-parent/root-outside')).toBe(ESCAPES)
    expect(await entry('../root-outside/secret')).toBe(ESCAPES)
    expect(await entry('.')).toBe(ESCAPES)
    expect(await entry('')).toBe(ESCAPES)
  })

  test('directories are made for what is created, and for nothing else', async () => {
    using there = places()
    expect(await outcomeOf(there.confined.open('a/b/c', O_RDONLY))).toBe('ENOENT')
    expect(existsSync(join(there.base, 'a'))).toBe(false)
    const file = await there.confined.open('a/b/c', O_WRONLY | O_CREAT)
    await file.close()
    expect(existsSync(join(there.base, 'a', 'b', 'c'))).toBe(true)
  })

  test('only regular files are opened, and a pipe holds up nobody', async () => {
    using there = places()
    Bun.spawnSync(['mkfifo', join(there.base, 'pipe')])
    expect(await outcomeOf(there.confined.open('pipe', O_RDONLY))).toBe('pipe is not a regular file')
    expect(await outcomeOf(there.confined.open('pipe', O_WRONLY))).toBe('ENXIO')
    expect(await outcomeOf(there.confined.open('sub', O_RDONLY))).toBe('sub is not a regular file')
    expect(await outcomeOf(there.confined.open('file/below', O_RDONLY))).toBe('ENOTDIR')
  })

  test('a root that is a link is the directory that it leads to', async () => {
    using there = places()
    symlinkSync(there.base, there.path('root-link'))
    const root = new FileRoot(there.path('root-link'))
    expect(await root.locate('file')).toBe(join(there.base, 'file'))
    expect(await root.locate(join(there.base, 'file'))).toBe(join(there.base, 'file'))
  })

  test('everything is inside of the root of all directories', async () => {
    using there = places()
    const root = new FileRoot('/')
    expect(await root.locate(join(there.base, 'link-to-secret'))).toBe(there.path('root-outside', 'secret'))
    expect(await root.locate('/etc/../..')).toBe('/')
  })

  test('a root that is not there is a usage error with a remedy', () => {
    using there = places()
    const missing = there.path('missing')
    expect(() => new FileRoot(missing)).toThrow(UsageError)
    expect(() => new FileRoot(missing)).toThrow(`invalid --file-root ${missing}: ENOENT; give an existing directory`)
  })
})

describe('without a file root', () => {
  const root = new FileRoot()

  test('relative paths stay below the working directory', async () => {
    expect(await root.locate('tests/../package.json')).toBe(resolve('package.json'))
    expect(await root.locate('.')).toBe(process.cwd())
    for (const path of ['..', '../x', 'tests/../../x', '../../../../../../etc/passwd']) {
      expect(await outcomeOf(root.locate(path))).toBe(ESCAPES)
      expect(await outcomeOf(root.locateEntry(path))).toBe(ESCAPES)
      expect(await outcomeOf(root.open(path, O_RDONLY))).toBe(ESCAPES)
    }
  })

  test('absolute paths may lead anywhere, and links are followed', async () => {
    using there = places()
    expect(await root.locate(there.path('root-outside', 'secret'))).toBe(there.path('root-outside', 'secret'))
    expect(await root.locate(there.path('root', '..', 'root-outside'))).toBe(there.path('root-outside'))
    const file = await root.open(there.path('root', 'link-to-secret'), O_RDONLY)
    expect(await file.readFile('utf8')).toBe('outside')
    await file.close()
  })
})

test('a path with a NUL character is invalid everywhere', async () => {
  using there = places()
  for (const root of [new FileRoot(), there.confined]) {
    for (const path of ['a\0b', '\0', '/etc/\0']) {
      expect(await outcomeOf(root.locate(path))).toBe('path must not contain NUL characters')
      expect(await outcomeOf(root.locateEntry(path))).toBe('path must not contain NUL characters')
      expect(await outcomeOf(root.open(path, O_RDONLY))).toBe('path must not contain NUL characters')
    }
  }
})

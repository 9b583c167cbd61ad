import { expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeTree, untilUndisturbed } from '../../../runtime/files/removal.ts'

function scratch() {
  const dir = mkdtempSync(join(tmpdir(), 'taskmill-removal-'))
  return { dir, tree: join(dir, 'tree'), [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

/** A chain of directories, made from its bottom up: no path is ever long. */
function makeChain(path: string, length: number): void {
  mkdirSync(path)
  for (let i = 1; i < length; i++) {
    mkdirSync(`${path}.above`)
    renameSync(path, `${path}.above/d`)
    renameSync(`${path}.above`, path)
  }
}

test('directories nested far deeper than a path can be long', async () => {
  using made = scratch()
  makeChain(made.tree, 6_000)
  await removeTree(made.tree)
  expect(existsSync(made.tree)).toBe(false)
}, 60_000)

test('wide and deep, with files on every level', async () => {
  using made = scratch()
  for (let branch = 0; branch < 20; branch++) {
    let path = join(made.tree, `${branch}`)
    for (let level = 0; level < 30; level++) {
      mkdirSync(path, { recursive: true })
      writeFileSync(join(path, 'file'), 'x')
      path = join(path, 'below')
    }
  }
  await removeTree(made.tree)
  expect(existsSync(made.tree)).toBe(false)
})

test('names that are no text, deep enough to be moved', async () => {
  using made = scratch()
  const name = Buffer.from([0x2f, 0xff, 0xfe, 0x80])
  let path = Buffer.from(made.tree)
  mkdirSync(path)
  for (let level = 0; level < 20; level++) {
    path = Buffer.concat([path, name])
    mkdirSync(path)
    writeFileSync(Buffer.concat([path, Buffer.from('/f'), Buffer.from([0xff])]), 'x')
  }
  await removeTree(made.tree)
  expect(existsSync(made.tree)).toBe(false)
})

test('what links point to stays, also that of links to directories', async () => {
  using made = scratch()
  const outside = join(made.dir, 'outside')
  mkdirSync(join(outside, 'below'), { recursive: true })
  writeFileSync(join(outside, 'below/precious'), 'x')
  mkdirSync(made.tree)
  symlinkSync(outside, join(made.tree, 'link'))
  symlinkSync(join(outside, 'below/precious'), join(made.tree, 'file'))
  await removeTree(made.tree)
  expect(existsSync(made.tree)).toBe(false)
  expect(existsSync(join(outside, 'below/precious'))).toBe(true)
})

test('a link, or a file, in the place of the tree goes by itself', async () => {
  using made = scratch()
  const outside = join(made.dir, 'outside')
  const deep = join(outside, 'a/b/c/d/e/f/g/h/i/j')
  mkdirSync(deep, { recursive: true })
  symlinkSync(outside, made.tree)
  await removeTree(made.tree)
  expect([existsSync(made.tree), existsSync(deep)]).toEqual([false, true])
  writeFileSync(made.tree, 'x')
  await removeTree(made.tree)
  expect(existsSync(made.tree)).toBe(false)
})

test('nothing there is fine', async () => {
  using made = scratch()
  await removeTree(made.tree)
  expect(existsSync(made.tree)).toBe(false)
})

/** Once `begins`, swaps the directory `path` for a link to `outside` and back, again and again, until `isOver`. */
async function swap(path: string, outside: string, begins: () => boolean, isOver: () => boolean): Promise<void> {
  const nextTurn = () => new Promise(setImmediate)
  while (!isOver() && !begins()) await nextTurn()
  while (!isOver()) {
    try {
      renameSync(path, `${path}.aside`)
      symlinkSync(outside, path)
      await nextTurn()
      unlinkSync(path)
      renameSync(`${path}.aside`, path)
    } catch {
      // it was moved or removed meanwhile
    }
    await nextTurn()
  }
}

test('a directory that is swapped for a link meanwhile leads nowhere', async () => {
  using made = scratch()
  const outside = join(made.dir, 'outside')
  const swapped = join(made.tree, '1/2/3/4/5/6/7/8')
  const names = Array.from({ length: 500 }, (_, i) => `d${i}`)
  for (const dir of [swapped, outside]) for (const name of names) mkdirSync(join(dir, name), { recursive: true })
  let isOver = false
  const isMoving = () => readdirSync(made.tree).some((name) => name.startsWith('moved-'))
  const swapping = swap(swapped, outside, isMoving, () => isOver)
  await removeTree(made.tree).catch(() => {}) // what is swapped may be in the way
  isOver = true
  await swapping
  expect(readdirSync(outside).sort()).toEqual(names.toSorted())
})

/** Fails `times` times with the error `code`, and counts the calls. */
function disturbed(code: string, times: number) {
  const made = {
    calls: 0,
    remove: async () => {
      if (++made.calls <= times) throw Object.assign(new Error(code), { code })
    },
  }
  return made
}

test.each(['ENOTDIR', 'ENOTEMPTY', 'ENOENT'])('a removal that others disturb (%s) is tried again', async (code) => {
  const passing = disturbed(code, 3)
  await untilUndisturbed(passing.remove)
  expect(passing.calls).toBe(4)
})

test('a removal is not tried for ever, and not again after another error', async () => {
  const [endless, other] = [disturbed('ENOTEMPTY', Infinity), disturbed('EIO', Infinity)]
  expect(await untilUndisturbed(endless.remove).catch(String)).toBe('Error: ENOTEMPTY')
  expect(await untilUndisturbed(other.remove).catch(String)).toBe('Error: EIO')
  expect([endless.calls, other.calls]).toEqual([6, 1])
})

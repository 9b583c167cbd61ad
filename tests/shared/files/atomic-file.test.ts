/** Goal: whoever looks at a replaced file sees the old or the new one. Method: real files, a reader beside the writer. */
import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile, replaceFileNow, syncDirectory, syncDirectoryNow } from '../../../shared/files/atomic-file.ts'
import { watchSyncs } from '../../support/syncs.ts'
import { tempDir } from '../../support/temp.ts'

describe('replacing a file', () => {
  test('leaves the new content and nothing else, for the owner only', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'state.json')
    writeFileSync(path, 'the old content, which is longer')
    await replaceFile(path, (file) => file.writeFile('new'))
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(readdirSync(dir.path)).toEqual(['state.json'])
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('makes a file that was not there', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'state.json')
    await replaceFile(path, (file) => file.writeFile('first'))
    expect(readFileSync(path, 'utf8')).toBe('first')
  })

  test('keeps the old content when the writing fails, and clears away what it began', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'state.json')
    writeFileSync(path, 'old')
    const replacing = replaceFile(path, async (file) => {
      await file.writeFile('half of the')
      throw new Error('no space left')
    })
    await expect(replacing).rejects.toThrow('no space left')
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(readdirSync(dir.path)).toEqual(['state.json'])
  })

  test('takes no notice of what an earlier writer left aside', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'state.json')
    writeFileSync(`${path}.new`, 'left over by a writer that was killed, and longer than the next')
    await replaceFile(path, (file) => file.writeFile('whole'))
    expect(readFileSync(path, 'utf8')).toBe('whole')
    expect(existsSync(`${path}.new`)).toBe(false)
  })

  test('never shows a half-written file to a reader', async () => {
    using dir = tempDir()
    const path = join(dir.path, 'state.json')
    const contentOf = (round: number) => String(round % 10).repeat(200_000 + round)
    writeFileSync(path, contentOf(0))
    let round = 0
    let isOver = false
    const writing = (async () => {
      for (round = 1; round <= 20; round++) {
        await replaceFile(path, async (file) => {
          const text = contentOf(round)
          await file.writeFile(text.slice(0, 1_000))
          await file.writeFile(text.slice(1_000))
        })
      }
      isOver = true
    })()
    while (!isOver) {
      const text = await Bun.file(path).text()
      expect(text).toBe(contentOf(text.length - 200_000))
    }
    await writing
    expect(readFileSync(path, 'utf8')).toBe(contentOf(20))
  })

  test('fails with the system’s error where the directory is missing', async () => {
    using dir = tempDir()
    const missing = join(dir.path, 'missing')
    await expect(replaceFile(join(missing, 'state.json'), async () => {})).rejects.toMatchObject({ code: 'ENOENT' })
    await expect(syncDirectory(missing)).rejects.toMatchObject({ code: 'ENOENT' })
  })
})

describe('replacing a file at once', () => {
  test('leaves the new content and nothing else, for the owner only', () => {
    using dir = tempDir()
    const path = join(dir.path, 'orphans.json')
    writeFileSync(path, 'the old content, which is longer')
    replaceFileNow(path, 'new')
    expect(readFileSync(path, 'utf8')).toBe('new')
    expect(readdirSync(dir.path)).toEqual(['orphans.json'])
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('syncs the file, then its name', () => {
    using dir = tempDir()
    using syncs = watchSyncs()
    replaceFileNow(join(dir.path, 'orphans.json'), 'new')
    expect(syncs.synced).toEqual(['file', 'directory'])
  })

  test('keeps the old file when the new one cannot be written, and clears away what it began', () => {
    using dir = tempDir()
    const path = join(dir.path, 'orphans.json')
    writeFileSync(path, 'old')
    using _syncs = watchSyncs(() => {
      throw new Error('EIO')
    })
    expect(() => replaceFileNow(path, 'new')).toThrow('EIO')
    expect(readFileSync(path, 'utf8')).toBe('old')
    expect(readdirSync(dir.path)).toEqual(['orphans.json'])
  })

  test('fails with the system’s error where it cannot be done', () => {
    using dir = tempDir()
    const missing = join(dir.path, 'missing')
    expect(() => replaceFileNow(join(missing, 'orphans.json'), 'new')).toThrow('ENOENT')
    expect(() => syncDirectoryNow(missing)).toThrow('ENOENT')
    const path = join(dir.path, 'orphans.json')
    mkdirSync(`${path}.new`)
    expect(() => replaceFileNow(path, 'new')).toThrow('EISDIR')
  })
})

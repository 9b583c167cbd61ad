/** Goal: whoever looks at a replaced file sees the old or the new one. Method: real files, a reader beside the writer. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { replaceFile, syncDirectory } from '../../shared/atomic-file.ts'
import { tempDir } from '../support/temp.ts'

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

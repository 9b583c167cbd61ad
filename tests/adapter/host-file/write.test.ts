/** Goal: a file of a host is changed as a whole or not at all. Method: real files, links, and a writer in between. */
import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { change, MAX_FILE_BYTES, wouldChange } from '../../../adapter/host-file/write.ts'
import { tempDir } from '../../support/temp.ts'

const more = (text: string) => `${text}more\n`
const fileAt = (path: string, within?: string) => ({ path, within, mode: 0o600 })

describe('a change', () => {
  test('keeps the old content beside the file, and its mode', () => {
    using dir = tempDir()
    const path = join(dir.path, 'a.json')
    writeFileSync(path, 'old\n')
    chmodSync(path, 0o640)
    expect(wouldChange(fileAt(path), more)).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe('old\n')
    expect(change(fileAt(path), more)).toEqual({ isChanged: true, backup: `${path}.before-taskmill` })
    expect(readFileSync(path, 'utf8')).toBe('old\nmore\n')
    expect(readFileSync(`${path}.before-taskmill`, 'utf8')).toBe('old\n')
    for (const one of [path, `${path}.before-taskmill`]) expect(statSync(one).mode & 0o777).toBe(0o640)
    expect(readdirSync(dir.path).toSorted()).toEqual(['a.json', 'a.json.before-taskmill'])
  })

  test('makes a missing file and its directories', () => {
    using dir = tempDir()
    const path = join(dir.path, 'a', 'b', 'c.json')
    expect(change(fileAt(path), more)).toEqual({ isChanged: true, backup: undefined })
    expect(readFileSync(path, 'utf8')).toBe('more\n')
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  test('that changes nothing writes nothing', () => {
    using dir = tempDir()
    const path = join(dir.path, 'a.json')
    writeFileSync(path, 'old\n')
    utimesSync(path, 0, 0)
    expect(change(fileAt(path), (text) => text)).toEqual({ isChanged: false, backup: undefined })
    expect(statSync(path).mtimeMs).toBe(0)
    expect(readdirSync(dir.path)).toEqual(['a.json'])
  })

  test('goes to the file behind a link, which stays', () => {
    using dir = tempDir()
    const [path, real] = [join(dir.path, 'link.json'), join(dir.path, 'real.json')]
    writeFileSync(real, 'old\n')
    symlinkSync('real.json', path)
    expect(change(fileAt(path, dir.path), more).backup).toBe(`${real}.before-taskmill`)
    expect(readlinkSync(path)).toBe('real.json')
    expect(readFileSync(real, 'utf8')).toBe('old\nmore\n')
  })

  test('is made again if another program writes meanwhile', () => {
    using dir = tempDir()
    const path = join(dir.path, 'a.json')
    writeFileSync(path, 'old\n')
    let edits = 0
    const result = change(fileAt(path), (text) => {
      if (++edits === 1) writeFileSync(path, 'other\n')
      return more(text)
    })
    expect({ edits, isChanged: result.isChanged }).toEqual({ edits: 2, isChanged: true })
    expect(readFileSync(path, 'utf8')).toBe('other\nmore\n')
    expect(readFileSync(`${path}.before-taskmill`, 'utf8')).toBe('other\n')
  })

  test('is given up if it is written each time, also by the first who makes it', () => {
    using dir = tempDir()
    const path = join(dir.path, 'a.json')
    let edits = 0
    const writing = () =>
      change(fileAt(path), (text) => {
        writeFileSync(path, `${++edits}\n`)
        return more(text)
      })
    expect(writing).toThrow('changes all the time')
    expect(readFileSync(path, 'utf8')).toBe(`${edits}\n`)
    expect(readdirSync(dir.path)).toEqual(['a.json'])
  })
})

describe('a file is left as it is', () => {
  test('that a link of a project puts elsewhere, also by a directory', () => {
    using dir = tempDir()
    const project = join(dir.path, 'project')
    const elsewhere = join(dir.path, 'elsewhere')
    for (const path of [project, elsewhere]) mkdirSync(path)
    const victim = join(elsewhere, 'mcp.json')
    symlinkSync(elsewhere, join(project, '.cursor'))
    const path = join(project, '.cursor', 'mcp.json')
    expect(() => change(fileAt(path, project), more)).toThrow('out of the project')
    expect(readdirSync(elsewhere)).toEqual([])
    writeFileSync(victim, 'old\n')
    symlinkSync(victim, join(project, '.mcp.json'))
    for (const one of [path, join(project, '.mcp.json')])
      expect(() => change(fileAt(one, project), more)).toThrow('out of the project')
    expect(readFileSync(victim, 'utf8')).toBe('old\n')
  })

  test.each<[string, (path: string) => void, string]>([
    ['is a link to nothing', (path) => symlinkSync('nothing', path), 'is a link that cannot be followed'],
    ['is a link to itself', (path) => symlinkSync('a.json', path), 'is a link that cannot be followed'],
    ['is a directory', (path) => mkdirSync(path), 'is not a file'],
    ['is not UTF-8', (path) => writeFileSync(path, new Uint8Array([0x22, 0xff, 0x22])), 'it is not UTF-8'],
    ['is huge', (path) => hugeFile(path), `has more than ${MAX_FILE_BYTES} bytes`],
  ])('that %s', (_, make, fault) => {
    using dir = tempDir()
    const path = join(dir.path, 'a.json')
    make(path)
    expect(() => wouldChange(fileAt(path), more)).toThrow(fault)
    expect(() => change(fileAt(path), more)).toThrow(fault)
    expect(readdirSync(dir.path)).toEqual(['a.json'])
  })
})

function hugeFile(path: string): void {
  writeFileSync(path, '')
  truncateSync(path, MAX_FILE_BYTES + 1)
}

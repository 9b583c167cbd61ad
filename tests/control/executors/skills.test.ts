/** Goal: a skill is an executable file of its directory and nothing else. Method: a real directory with both. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  describedBy,
  MAX_DESCRIPTION_LENGTH,
  MAX_LISTED_SKILLS,
  SkillsDirectory,
} from '../../../control/executors/skills.ts'
import { UsageError } from '../../../shared/contract/errors.ts'
import { type TempDir, tempDir } from '../../support/temp.ts'

let temp: TempDir
let dir: string
let skills: SkillsDirectory
beforeAll(() => {
  temp = tempDir()
  dir = join(temp.path, 'skills')
  mkdirSync(join(dir, 'tools'), { recursive: true })
  const put = (path: string, text: string, mode = 0o755) => {
    writeFileSync(join(temp.path, path), text)
    chmodSync(join(temp.path, path), mode)
  }
  put('skills/greet', '#!/bin/sh\n# Greets whoever is named.\necho hello "$1"\n')
  put('skills/two words.sh', '#!/bin/sh\necho\n')
  put('skills/notes.txt', 'not a program\n', 0o644)
  put('skills/.hidden', '#!/bin/sh\n')
  put('skills/tools/inner', '#!/bin/sh\n# Lies deeper.\n')
  put('outside', '#!/bin/sh\n')
  put('skills-too', '#!/bin/sh\n')
  symlinkSync('tools/inner', join(dir, 'alias'))
  symlinkSync('../outside', join(dir, 'leaves'))
  symlinkSync(join(temp.path, 'skills-too'), join(dir, 'leaves-too'))
  symlinkSync('/bin/sh', join(dir, 'sh'))
  symlinkSync('nowhere', join(dir, 'dangling'))
  symlinkSync('loop', join(dir, 'loop'))
  skills = new SkillsDirectory(dir)
})
afterAll(() => temp[Symbol.dispose]())

describe('a skill', () => {
  test('is found by its file name', async () => {
    expect(await skills.find('greet')).toBe(join(dir, 'greet'))
    expect(await skills.find('two words.sh')).toBe(join(dir, 'two words.sh'))
  })

  test('may be a link to another file of the directory', async () => {
    expect(await skills.find('alias')).toBe(join(dir, 'tools/inner'))
  })

  test.each([
    ...['', '.', '..', '/', 'nowhere', 'notes.txt', 'tools', 'tools/inner', './greet', '../outside', 'greet/', 'GREET'],
    ...['.hidden', 'greet\0', 'leaves', 'leaves-too', 'sh', 'dangling', 'loop', 'x'.repeat(300), '__proto__'],
  ])('is not %j', async (name) => {
    expect(await skills.find(name)).toBeUndefined()
    expect(await skills.find(join(dir, name))).toBeUndefined()
  })

  test('comes and goes with its file', async () => {
    const path = join(dir, 'late')
    expect(await skills.find('late')).toBeUndefined()
    writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
    expect(await skills.find('late')).toBe(path)
    chmodSync(path, 0o644)
    expect(await skills.find('late')).toBeUndefined()
    renameSync(path, join(temp.path, 'late'))
    expect(await skills.find('late')).toBeUndefined()
  })
})

describe('the list of skills', () => {
  test('has name, description and path of each, sorted by name', async () => {
    expect(await skills.listSkills()).toEqual([
      { name: 'alias', description: 'Lies deeper.', path: join(dir, 'tools/inner') },
      { name: 'greet', description: 'Greets whoever is named.', path: join(dir, 'greet') },
      { name: 'two words.sh', description: '', path: join(dir, 'two words.sh') },
    ])
  })

  test('is empty without a directory, and when it is gone', async () => {
    using other = tempDir()
    const gone = join(other.path, 'gone')
    mkdirSync(gone)
    const lost = new SkillsDirectory(gone)
    renameSync(gone, join(other.path, 'elsewhere'))
    for (const none of [new SkillsDirectory(), lost]) {
      expect(await none.listSkills()).toEqual([])
      expect(await none.find('greet')).toBeUndefined()
    }
  })

  test('ends at its limit, beyond which skills can still be called', async () => {
    using many = tempDir()
    for (let i = 0; i <= MAX_LISTED_SKILLS; i++) {
      symlinkSync('skill', join(many.path, `s${String(i).padStart(6, '0')}`))
    }
    writeFileSync(join(many.path, 'skill'), '', { mode: 0o755 })
    const crowded = new SkillsDirectory(many.path)
    const list = await crowded.listSkills()
    expect(list).toHaveLength(MAX_LISTED_SKILLS)
    expect(list[0]!.name).toBe('s000000')
    expect(await crowded.find(`s00${MAX_LISTED_SKILLS}`)).toBe(join(many.path, 'skill'))
  })

  test.each(['nowhere', 'skills/greet'])('needs a directory: %s is none', (path) => {
    const given = join(temp.path, path)
    expect(() => new SkillsDirectory(given)).toThrow(
      new UsageError(`invalid --skills-dir ${given}: no such directory; give an existing one`),
    )
  })
})

describe('the description of a skill', () => {
  test.each([
    ['#!/bin/sh\n# Says hello.\n# And more.\necho\n', 'Says hello.'],
    ['#!/bin/sh\n\n#\n##   Indented   \n', 'Indented'],
    ['#!/usr/bin/env bun\n// Counts words.\n', 'Counts words.'],
    ['#!/bin/sh\r\n# Windows line ends\r\n', 'Windows line ends'],
    ['#!/bin/sh\n# no line end', 'no line end'],
    [`#!/bin/sh\n# ${'long '.repeat(100)}\n`, 'long '.repeat(100).slice(0, MAX_DESCRIPTION_LENGTH)],
    ['#!/bin/sh\nset -e\n# about the next line only\n', ''],
    ['#!/bin/sh\n', ''],
    ['# no interpreter\n', ''],
    ['\x7fELF\x02\n# not a comment\n', ''],
    ['', ''],
  ])('of %j is %j', (text, description) => {
    expect(describedBy(text)).toBe(description)
  })
})

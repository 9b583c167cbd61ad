/**
 * Skills: the executables of one directory, each called by its file name.
 *
 * A name is a file name and nothing else, so that no caller reaches beyond the directory; a symbolic link may point to
 * another file in it, not out of it. The directory is read at each use: a skill that is put there is there.
 */
import { constants, existsSync, statSync } from 'node:fs'
import { access, open, readdir, realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { UsageError } from '../../shared/errors.ts'

export interface Skill {
  /** The file name. */
  readonly name: string
  /** What the first comment line of a script says; empty for other programs. */
  readonly description: string
  /** Where the program lies, with links resolved. */
  readonly path: string
}

/** Skills that a list has; whoever has more of them can still call each. Manifests are for models to read. */
export const MAX_LISTED_SKILLS = 1_000

/** Characters of a description; the rest of its line is cut off. */
export const MAX_DESCRIPTION_LENGTH = 200

/** Bytes at the beginning of a script in which its description is looked for. */
const DESCRIPTION_WITHIN_BYTES = 4_096

export class SkillsDirectory {
  readonly #dir: string | undefined

  /** Without a directory there are no skills. Throws `UsageError` when `dir` is not a directory. */
  constructor(dir?: string) {
    if (dir === undefined) return
    this.#dir = resolve(dir)
    if (existsSync(dir) && statSync(dir).isDirectory()) return
    throw new UsageError(`invalid --skills-dir ${dir}: no such directory; give an existing one`)
  }

  /** Whether there is a directory that may have skills. */
  get mayExist(): boolean {
    return this.#dir !== undefined
  }

  /** The program behind the name of a skill, or undefined when there is no such skill now. */
  async find(name: string): Promise<string | undefined> {
    if (this.#dir === undefined || !isSkillName(name)) return undefined
    try {
      const [dir, path] = await Promise.all([realpath(this.#dir), realpath(join(this.#dir, name))])
      if (!path.startsWith(dir.endsWith(sep) ? dir : dir + sep)) return undefined
      if (!(await stat(path)).isFile()) return undefined
      await access(path, constants.X_OK)
      return path
    } catch {
      return undefined // not there, or not ours to run
    }
  }

  /** The skills there are now, sorted by name. */
  async listSkills(): Promise<Skill[]> {
    const names = this.#dir === undefined ? [] : await readdir(this.#dir).catch(() => [])
    const skills: Skill[] = []
    for (const name of names.sort()) {
      const path = await this.find(name)
      if (path !== undefined) skills.push({ name, description: await descriptionOf(path), path })
      if (skills.length === MAX_LISTED_SKILLS) break
    }
    return skills
  }
}

/** A hidden file is none: editors and version control leave such things lying about. */
const isSkillName = (name: string) => name !== '' && !name.startsWith('.') && !/[/\0]/.test(name)

async function descriptionOf(path: string): Promise<string> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const { buffer, bytesRead } = await file.read(
      Buffer.alloc(DESCRIPTION_WITHIN_BYTES),
      0,
      DESCRIPTION_WITHIN_BYTES,
      0,
    )
    return describedBy(buffer.toString('utf8', 0, bytesRead))
  } catch {
    return '' // a program may be executable without being readable
  }
}

/**
 * The first line with words of the comment that follows the `#!` line of a script, without its `#` or `//`. Empty when
 * something else follows, or when `text` is no script.
 */
export function describedBy(text: string): string {
  const [interpreter, ...lines] = text.split(/\r?\n/)
  if (!interpreter!.startsWith('#!')) return ''
  for (const line of lines) {
    const comment = /^\s*(?:#+|\/\/+)(.*)$/.exec(line)?.[1]?.trim()
    if (comment) return comment.slice(0, MAX_DESCRIPTION_LENGTH)
    if (comment === undefined && line.trim() !== '') return ''
  }
  return ''
}

/**
 * Skills: the executables of one directory, each called by its file name.
 *
 * A name is a plain file name, so callers cannot reach outside the directory. A symbolic link may point to another file
 * in the directory, not out of it. The directory is read at each use, so a new skill is available at once.
 */
import { constants, existsSync, statSync } from 'node:fs'
import { access, open, readdir, realpath, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { UsageError } from '../../shared/contract/errors.ts'

export interface Skill {
  /** The file name. */
  readonly name: string
  /** The first comment line of a script; empty for other programs. */
  readonly description: string
  /** Path of the program, with links resolved. */
  readonly path: string
}

/** Maximum number of listed skills. Others can still be called. Models read the list, so it must stay short. */
export const MAX_LISTED_SKILLS = 1_000

/** Maximum characters of a description. Longer lines are cut. */
export const MAX_DESCRIPTION_LENGTH = 200

/** Bytes of a script that are searched for its description. */
const DESCRIPTION_WITHIN_BYTES = 4_096

export class SkillsDirectory {
  readonly #dir: string | undefined

  /** Undefined means no skills. Throws `UsageError` if `dir` is not a directory. */
  constructor(dir?: string) {
    if (dir === undefined) return
    this.#dir = resolve(dir)
    if (existsSync(dir) && statSync(dir).isDirectory()) return
    throw new UsageError(`invalid --skills-dir ${dir}: no such directory; give an existing one`)
  }

  /** Whether a skills directory is configured. */
  get mayExist(): boolean {
    return this.#dir !== undefined
  }

  /** Path of the skill's program; undefined if there is no such skill. */
  async find(name: string): Promise<string | undefined> {
    if (this.#dir === undefined || !isSkillName(name)) return undefined
    try {
      const [dir, path] = await Promise.all([realpath(this.#dir), realpath(join(this.#dir, name))])
      if (!path.startsWith(dir.endsWith(sep) ? dir : dir + sep)) return undefined
      if (!(await stat(path)).isFile()) return undefined
      await access(path, constants.X_OK)
      return path
    } catch {
      return undefined // missing, or not executable by us
    }
  }

  /** The current skills, sorted by name. */
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

/** Hidden files are not skills: editors and version control create them. */
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
    return '' // executable but not readable
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

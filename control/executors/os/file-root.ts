/**
 * Where file tasks may read and write.
 *
 * Relative paths resolve against the base (`--file-root`, else the working directory) and may not leave it. With
 * `--file-root` absolute paths may not leave it either, nor may symbolic links on the way. Links are resolved first and
 * the resolved path is opened without following any; on Linux the opened file is then asked where it really lies, so
 * that a link put in place in between is noticed before a byte is read or written.
 */
import { constants, realpathSync, statSync } from 'node:fs'
import { type FileHandle, lstat, mkdir, open, readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve, sep } from 'node:path'
import { systemCodeOf, UsageError } from '../../../shared/contract/errors.ts'
import { ExecutionError, invalidInput } from '../executor.ts'

const escapes = () => new ExecutionError('denied', 'path escapes the file root')

const isWithin = (root: string, path: string) =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

export class FileRoot {
  readonly #base: string
  /** The configured root. It may be a symbolic link to the base. */
  readonly #given: string
  readonly #isConfined: boolean

  /** `root` confines all paths. Without it, relative paths are confined to the working directory. */
  constructor(root?: string) {
    this.#isConfined = root !== undefined
    this.#given = resolve(root ?? '.')
    try {
      this.#base = root === undefined ? process.cwd() : realpathSync(root)
    } catch (error) {
      throw new UsageError(`invalid --file-root ${root}: ${systemCodeOf(error) ?? error}; give an existing directory`)
    }
    if (!statSync(this.#base).isDirectory()) {
      throw new UsageError(`invalid --file-root ${root}: it is not a directory; give an existing directory`)
    }
  }

  /** Throws `invalid_input` or `denied` for a path that is refused whatever lies there. */
  check(path: string): void {
    this.#resolve(path)
  }

  /** The resolved path. With a root, links are resolved too. Throws `denied`. */
  async locate(path: string): Promise<string> {
    const resolved = this.#resolve(path)
    return this.#isConfined ? this.#confine(resolved) : resolved
  }

  /** As `locate`, but does not resolve the last part: deleting a link deletes the link itself. */
  async locateEntry(path: string): Promise<string> {
    const resolved = this.#resolve(path)
    return this.#isConfined ? join(await this.#confine(dirname(resolved)), basename(resolved)) : resolved
  }

  /** Opens `path`. Creates its directories if `flags` create the file. The caller closes the handle. */
  async open(path: string, flags: number): Promise<FileHandle> {
    const target = await this.locate(path)
    if ((flags & constants.O_CREAT) !== 0) await mkdir(dirname(target), { recursive: true })
    // Without O_NONBLOCK, opening a pipe without a writer would block a thread for ever.
    const guards = constants.O_NONBLOCK | (this.#isConfined ? constants.O_NOFOLLOW : 0)
    const file = await open(target, flags | guards, 0o644)
    try {
      if (this.#isConfined && process.platform === 'linux') {
        const reached = await readlink(`/proc/self/fd/${file.fd}`)
        if (!isWithin(this.#base, reached)) throw escapes()
      }
      if (!(await file.stat()).isFile()) throw new ExecutionError('external_failure', `${path} is not a regular file`)
      return file
    } catch (error) {
      await file.close()
      throw error
    }
  }

  #resolve(path: string): string {
    if (path.includes('\0')) throw invalidInput('path must not contain NUL characters')
    const resolved = resolve(this.#base, path)
    const isInside = isWithin(this.#base, resolved) || (isAbsolute(path) && isWithin(this.#given, resolved))
    if ((this.#isConfined || !isAbsolute(path)) && !isInside) throw escapes()
    return resolved
  }

  /** Resolves the links of the existing part of a path. */
  async #confine(path: string): Promise<string> {
    const missing: string[] = []
    for (let existing = path; ; existing = dirname(existing)) {
      const real = await ifThere(realpath(existing))
      if (real !== undefined) {
        if (!isWithin(this.#base, real)) throw escapes()
        return join(real, ...missing)
      }
      // A dangling link exists, and writing through it would create its target.
      if ((await ifThere(lstat(existing))) !== undefined) throw escapes()
      missing.unshift(basename(existing))
    }
  }
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

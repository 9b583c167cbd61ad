/**
 * Writes a file or a directory into a workspace that is filled, and computes its hash.
 *
 * The target lies in a directory that only the service can enter, so nothing else is in it. Two descriptors are open for
 * each level at most.
 */
import { closeSync, fchmodSync, fchownSync, mkdirSync } from 'node:fs'
import type { CopiedFile } from './file-copy.ts'
import type { OpenDirectory } from './open-directory.ts'
import { OPEN_MODE, PERMISSIONS } from './tree-walk.ts'

/** Makes a file at a path where there is none, or leaves nothing. */
export type MakeFile = (path: Buffer) => Promise<CopiedFile>

export class TreeWriter implements Disposable {
  readonly #top: OpenDirectory
  /** User and group of all that is written; undefined for those of the service. */
  readonly #owner: number | undefined
  readonly #hash = new TreeHash()
  /** Directories that were entered and not left, the innermost last. */
  readonly #entered: OpenDirectory[] = []
  #sha256: string | undefined

  /** `top` stays open. */
  constructor(top: OpenDirectory, owner: number | undefined) {
    this.#top = top
    this.#owner = owner
  }

  /** The hash of what was written to `top`. */
  get sha256(): string {
    if (this.#sha256 === undefined || this.#entered.length > 0) throw new Error('the tree is not complete')
    return this.#sha256
  }

  enter(name: Buffer): void {
    const into = this.#innermost
    mkdirSync(into.at(name), { mode: OPEN_MODE })
    this.#entered.push(into.child(name)!)
    this.#hash.enter()
  }

  async file(name: Buffer, mode: number, make: MakeFile): Promise<void> {
    const { fd, sha256 } = await make(this.#innermost.at(name))
    try {
      this.#hash.add('file', this.#finish(fd, mode), sha256, name)
      this.#sha256 = sha256
    } finally {
      closeSync(fd)
    }
  }

  leave(name: Buffer, mode: number): void {
    using left = this.#entered.pop()!
    this.#sha256 = this.#hash.leave(this.#finish(left.fd, mode | OPEN_MODE), name)
  }

  get #innermost(): OpenDirectory {
    return this.#entered.at(-1) ?? this.#top
  }

  /** Owner first: a change of the owner clears bits of the mode. Returns the permissions. */
  #finish(fd: number, mode: number): number {
    const permissions = mode & PERMISSIONS
    if (this.#owner !== undefined) fchownSync(fd, this.#owner, this.#owner)
    fchmodSync(fd, permissions)
    return permissions
  }

  [Symbol.dispose](): void {
    for (const directory of this.#entered) directory[Symbol.dispose]()
  }
}

/**
 * The hash of a directory: that of a list with a line for each entry, in the order of the bytes of their names: `file` or
 * `directory`, its permissions in octal, its own hash and its name, with spaces between them and a NUL at the end. The hash
 * of a file is that of its bytes.
 */
class TreeHash {
  /** A list for each directory that was entered and not left, the innermost last. */
  readonly #lists: Bun.CryptoHasher[] = []

  enter(): void {
    this.#lists.push(new Bun.CryptoHasher('sha256'))
  }

  /** The next entry of the innermost directory. */
  add(kind: 'file' | 'directory', mode: number, sha256: string, name: Buffer): void {
    const start = Buffer.from(`${kind} ${mode.toString(8)} ${sha256} `)
    this.#lists.at(-1)?.update(Buffer.concat([start, name, Buffer.of(0)]))
  }

  /** Leaves the innermost directory, which becomes an entry of the one around it. Returns its hash. */
  leave(mode: number, name: Buffer): string {
    const sha256 = this.#lists.pop()!.digest('hex')
    this.add('directory', mode, sha256, name)
    return sha256
  }
}

/**
 * The hash of a directory: that of a list with a line for each entry, in the order of the bytes of their names: `file` or
 * `directory`, its permissions in octal, its own hash and its name, with spaces between them and a NUL at the end. The hash
 * of a file is that of its bytes.
 */

export class TreeHash {
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

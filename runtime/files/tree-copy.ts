/** Copies a file or a directory of an ended task for another task of this service, or writes a file with a given content. */
import { type Clone, copyOpenFile, newFile } from './file-copy.ts'
import type { OpenDirectory } from './open-directory.ts'
import type { CopyAmount, TreeWalk } from './tree-walk.ts'
import { TreeWriter } from './tree-writer.ts'

export interface CopySettings {
  /** User and group of the copies; undefined for those of the service. */
  readonly owner: number | undefined
  readonly amount: CopyAmount
  readonly clone: Clone
  /** Called often. What it throws ends the copy. */
  readonly check: () => void
}

export interface Copied {
  readonly sha256: string
  readonly files: number
  readonly bytes: number
}

/** Writes what is walked to `target`. Throws `CopyFault`; then the target is not complete. */
export async function copyWalked(
  walk: TreeWalk,
  target: OpenDirectory,
  { owner, amount, clone, check }: CopySettings,
): Promise<Copied> {
  using writer = new TreeWriter(target, owner)
  const onBytes = (bytes: number) => {
    amount.addBytes(bytes)
    check()
  }
  return await counted(amount, async () => {
    for await (const step of walk) {
      if (step.kind === 'enter') writer.enter(step.name)
      else if (step.kind === 'leave') writer.leave(step.name, step.mode)
      else await writer.file(step.name, step.mode, (to) => copyOpenFile({ from: step.fd, to, clone, onBytes }))
    }
    return writer.sha256
  })
}

const CONTENT_MODE = 0o644

/** Writes a file with this content to `as` in `target`. Throws `CopyFault`; then there is no file. */
export async function copyContent(
  content: string,
  target: OpenDirectory,
  as: Buffer,
  { owner, amount, check }: Omit<CopySettings, 'clone'>,
): Promise<Copied> {
  using writer = new TreeWriter(target, owner)
  return await counted(amount, async () => {
    const bytes = Buffer.from(content)
    amount.addFile(bytes.length)
    amount.addBytes(bytes.length)
    await writer.file(as, CONTENT_MODE, (to) => newFile(to, bytes, check))
    return writer.sha256
  })
}

/** What `copy`, which returns a hash, has added to the amount. */
export async function counted(amount: CopyAmount, copy: () => Promise<string>): Promise<Copied> {
  const { files, bytes } = amount
  const sha256 = await copy()
  return { sha256, files: amount.files - files, bytes: amount.bytes - bytes }
}

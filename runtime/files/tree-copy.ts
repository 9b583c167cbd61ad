/** Copies a file or a directory of an ended task, for another task of this service. */
import { type Clone, copyOpenFile } from './file-copy.ts'
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

/** What `copy`, which returns a hash, has added to the amount. */
export async function counted(amount: CopyAmount, copy: () => Promise<string>): Promise<Copied> {
  const { files, bytes } = amount
  const sha256 = await copy()
  return { sha256, files: amount.files - files, bytes: amount.bytes - bytes }
}

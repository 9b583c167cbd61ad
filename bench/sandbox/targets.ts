/** The sandbox of the service, of bwrap, and the minimal cost of one. */
import { chownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { SandboxPolicy } from '../../shared/contract/runtime-request.ts'
import { compiledC } from '../compiled-c.ts'
import type { Lifetime } from '../lifetime.ts'

/** What tasks of the service ask for: the profile as it is. */
export const SANDBOX: SandboxPolicy = { profile: 'linux_sandbox' }

const HIDDEN = ['/run', '/home', '/root', '/var/tmp']
const SANDBOX_UID = 65_531

/** A directory that the user of a sandbox may write. */
export function sandboxWorkspace({ dir }: Lifetime): string {
  const workspace = join(dir, 'workspace')
  mkdirSync(workspace, { recursive: true })
  if (isRoot) chownSync(workspace, SANDBOX_UID, SANDBOX_UID)
  return workspace
}

/** A program that only clones and executes its arguments; undefined where there is no compiler. */
export const compiledFloor = (lifetime: Lifetime): Promise<string | undefined> =>
  compiledC(
    join(import.meta.dir, 'floor.c'),
    ['-static', '-nostdlib', '-ffreestanding', '-fno-stack-protector'],
    lifetime,
  )

const isRoot = process.getuid?.() === 0

/** bwrap with the same namespaces and the same view of the host; it has no filter, no limits, and keeps no record. */
export function bwrapCommand(workspace: string): string[] | undefined {
  const program = Bun.which('bwrap')
  if (program === null) return undefined
  return [
    ...[
      program,
      '--unshare-user',
      '--unshare-pid',
      '--unshare-uts',
      '--unshare-ipc',
      '--unshare-net',
      '--cap-drop',
      'ALL',
    ],
    ...(isRoot ? ['--uid', String(SANDBOX_UID), '--gid', String(SANDBOX_UID)] : []),
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
    ...HIDDEN.flatMap((path) => ['--tmpfs', path]),
    ...['--bind', workspace, workspace, '--chdir', workspace, '/bin/true'],
  ]
}

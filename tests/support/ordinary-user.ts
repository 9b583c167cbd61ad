/**
 * Executables for an ordinary user, for tests that run as root. Other users may not be able to read our checkout, so
 * they run a copy.
 *
 * The first test of a file that needs a copy creates it. It is removed at the end of that file.
 */
import { afterAll } from 'bun:test'
import { chmodSync, copyFileSync, existsSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram, type ProgramName } from '../../scripts/build.ts'
import type { ServiceOptions } from './service.ts'
import { type TempDir, tempDir } from './temp.ts'

/**
 * A user that no machine has and no other test process, as limits count all processes of a user. A container may have no
 * ids from 65,536 on.
 */
export const ownUid = (first: number): number => first + (process.pid % 5_000)

export const ORDINARY_UID = ownUid(50_000)

let programs: TempDir | undefined
afterAll(() => programs?.[Symbol.dispose]())

/** The path of a copy of an executable that everybody may run. */
export async function openProgram(name: ProgramName = 'taskmill-runtime'): Promise<string> {
  const original = await builtProgram(name)
  programs ??= tempDir()
  const path = join(programs.path, name)
  if (existsSync(path)) return path
  chmodSync(programs.path, 0o755)
  copyFileSync(original, path)
  return path
}

/** What becomes that user, in these groups besides its own, and runs the rest. */
export const becoming = (groups: readonly number[] = []): string[] => [
  ...['setpriv', '--reuid', String(ORDINARY_UID), '--regid', String(ORDINARY_UID)],
  ...(groups.length === 0 ? ['--clear-groups', '--'] : ['--groups', groups.join(','), '--']),
]

/** How a service is started as that user. */
export const asOrdinaryUser = async (groups: readonly number[] = [], name?: ProgramName): Promise<ServiceOptions> => ({
  through: [...becoming(groups), 'sh', '-c', `shift; exec ${await openProgram(name)} "$@"`, 'sh'],
  ownerUid: ORDINARY_UID,
})

/**
 * Executables for an ordinary user, for tests that run as root. Other users may not be able to read our checkout, so
 * they run a copy.
 *
 * The first test of a file that needs the copy creates it. It is removed at the end of that file.
 */
import { afterAll } from 'bun:test'
import { chmodSync, copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { builtProgram } from '../../scripts/build.ts'
import type { ServiceOptions } from './service.ts'
import { type TempDir, tempDir } from './temp.ts'

/** A user that no machine has. */
export const ORDINARY_UID = 61_235

let programs: TempDir | undefined
afterAll(() => programs?.[Symbol.dispose]())

/** The path of a copy of the runtime executable that everybody may run. */
export async function openProgram(): Promise<string> {
  const isFirst = programs === undefined
  programs ??= tempDir()
  const path = join(programs.path, 'taskmill-runtime')
  if (isFirst) {
    chmodSync(programs.path, 0o755)
    copyFileSync(await builtProgram('taskmill-runtime'), path)
  }
  return path
}

/** What becomes that user, in these groups besides its own, and runs the rest. */
export const becoming = (groups: readonly number[] = []): string[] => [
  ...['setpriv', '--reuid', String(ORDINARY_UID), '--regid', String(ORDINARY_UID)],
  ...(groups.length === 0 ? ['--clear-groups', '--'] : ['--groups', groups.join(','), '--']),
]

/** How a service is started as that user. */
export const asOrdinaryUser = async (groups: readonly number[] = []): Promise<ServiceOptions> => ({
  through: [...becoming(groups), 'sh', '-c', `shift; exec ${await openProgram()} "$@"`, 'sh'],
  ownerUid: ORDINARY_UID,
})

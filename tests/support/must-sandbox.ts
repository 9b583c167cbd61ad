/**
 * Whether sandboxes can be tested here. A machine that cannot skips those tests with the reason in their names;
 * TASKMILL_MUST_SANDBOX=1 forbids it.
 */
import { join } from 'node:path'
import { chooseLauncher } from '../../runtime/launcher/embedded.ts'
import { explainFault } from '../../runtime/launcher/faults.ts'
import { SANDBOX_FEATURES } from '../../runtime/launcher/plan.ts'
import { runInSandbox } from '../../runtime/launcher/throw-away.ts'
import { tempDir } from './temp.ts'

/** The reason as it is, or a failure. */
export function mustSandbox(reason: string | undefined): string | undefined {
  if (reason !== undefined && process.env.TASKMILL_MUST_SANDBOX === '1')
    throw new Error(`the sandbox cannot be tested: ${reason}`)
  return reason
}

/** A user that no file belongs to. */
export const SANDBOX_UID = 65_534

async function faultOfSandbox(): Promise<string | undefined> {
  using dir = tempDir()
  const launcher = chooseLauncher(dir.path, [
    process.execPath,
    join(import.meta.dir, '../fixtures/portable-launcher.ts'),
  ])
  if (!launcher.isNative) return `there is no launcher for ${process.platform}`
  const sandbox = { features: SANDBOX_FEATURES, ...(process.getuid?.() === 0 && { uid: SANDBOX_UID }) }
  const { outcome, complaints } = await runInSandbox(launcher, { sandbox, command: ['/bin/true'] })
  const ending = outcome?.ending
  if (ending === undefined) return complaints
  if (ending.how === 'exited' && ending.exit_code === 0) return undefined
  return 'step' in ending ? explainFault(ending.step, ending.errno).message : `a sandbox ended with ${ending.how}`
}

/** Why there can be no sandboxes with everything in them, or undefined. */
export const missingSandbox = mustSandbox(await faultOfSandbox())

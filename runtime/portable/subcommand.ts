/**
 * The subcommand of the runtime executable that acts as a launcher. Only the service uses it, so help does not list it.
 */
import type { LauncherProgram } from '../launch/embedded.ts'
import { wrapEnvironment } from './environment.ts'

export const PORTABLE_LAUNCHER = 'portable-launcher'

/** This executable as a launcher. */
export const portableLauncher = (): LauncherProgram => ({
  command: [process.execPath, PORTABLE_LAUNCHER],
  wrapEnvironment,
  isNative: false,
})

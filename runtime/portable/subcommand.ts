/** The subcommand of the runtime executable that acts as a launcher. It is for the service, and not in the help. */
import type { LauncherProgram } from '../launcher/embedded.ts'
import { wrapEnvironment } from './environment.ts'

export const PORTABLE_LAUNCHER = 'portable-launcher'

/** This executable as a launcher. */
export const portableLauncher = (): LauncherProgram => ({
  command: [process.execPath, PORTABLE_LAUNCHER],
  wrapEnvironment,
  isNative: false,
})

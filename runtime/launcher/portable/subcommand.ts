/** The subcommand of the runtime executable that acts as a launcher. It is for the service, and not in the help. */
export const PORTABLE_LAUNCHER = 'portable-launcher'

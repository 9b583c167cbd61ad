/** Asks a launcher to end its task (signals.h). Whoever wants the launcher itself to end sends another one. */
export const KILL_SIGNAL = 'SIGUSR2'

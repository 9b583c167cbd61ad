/** Makes a launcher end its task (signals.h). To end the launcher itself, send another signal. */
export const KILL_SIGNAL = 'SIGUSR2'

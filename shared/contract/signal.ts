/** Tasks that wait until a caller signals, or until a time: their type, and the limits of both. */

/** The type of such a task. */
export const WAIT_TYPE = 'wait'

/** Characters of the message of a wait. It stays in memory as long as its task. */
export const MAX_WAIT_MESSAGE_CHARACTERS = 500

/** Characters of the parameters of a wait as JSON, about. They stay in memory as long as their task. */
export const MAX_WAIT_CHARACTERS = 8_192

/** Bytes of the value of a signal. It stays in memory as long as its task. */
export const MAX_SIGNAL_BYTES = 64 * 1024

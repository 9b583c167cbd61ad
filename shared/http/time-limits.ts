/**
 * The time limits of the specification: 15 s for receiving a request, 30 s for sending the answer, 60 s for an idle connection.
 * Bun counts them in steps of 4 s. Bun itself also closes a connection whose headers take more than 12 s.
 */
export const READ_TIMEOUT_SECONDS = 15
export const WRITE_TIMEOUT_SECONDS = 30
export const IDLE_TIMEOUT_SECONDS = 60

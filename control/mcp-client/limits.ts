/** Limits of what MCP servers may send, whatever the way to them. */

/**
 * Bytes of one message. It has to be in memory whole, as its end is needed to read it. Screenshots as base64 have a few
 * million; it is what a file task may read, too.
 */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** Tools of one server that are known; models get lost long before. */
export const MAX_TOOLS = 1_000

/** Limits for messages and tools of MCP servers, over every transport. */

/**
 * Maximum bytes of one message, which has to be in memory as a whole to be parsed. Screenshots in base64 have a few
 * million. File tasks have the same limit.
 */
export const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** Maximum tools of one server. Models fail with far fewer. */
export const MAX_TOOLS = 1_000

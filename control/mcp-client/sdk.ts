/**
 * Loads the official SDK when a server is first used. It takes 20 ms and 10 MB, and most services never use a server.
 */
export const loadSdk = () => import('@modelcontextprotocol/client')

export type Sdk = Awaited<ReturnType<typeof loadSdk>>

/**
 * The official SDK, loaded when a server is first spoken to: it costs 20 ms and 10 MB, and most services of ours never
 * speak to one.
 */
export const loadSdk = () => import('@modelcontextprotocol/client')

export type Sdk = Awaited<ReturnType<typeof loadSdk>>

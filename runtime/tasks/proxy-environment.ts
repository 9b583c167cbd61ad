/**
 * The environment of a task whose network has rules: it names the port of the forwarder in the sandbox, and is what curl, git,
 * pip, npm, cargo, apt, Node and the HTTP libraries of most languages read. Pure.
 */

/** The port of the loopback in the sandbox that leads to the proxy. */
export const EGRESS_PORT = 3128

const PROXY = `http://127.0.0.1:${EGRESS_PORT}`

/** The loopback of the sandbox: servers that the task starts itself. */
const LOCAL = 'localhost,127.0.0.1,::1'

/** Variables that programs read in upper and in lower case. curl ignores HTTP_PROXY, others ignore http_proxy. */
const IN_BOTH_CASES = { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, ALL_PROXY: PROXY, NO_PROXY: LOCAL } as const

const OTHERS = {
  npm_config_proxy: PROXY,
  npm_config_https_proxy: PROXY,
  npm_config_noproxy: LOCAL,
  CARGO_HTTP_PROXY: PROXY,
  NODE_USE_ENV_PROXY: '1',
} as const

/** `given` are the variables that the task sets itself. A variable that it sets is left to it in either case. */
export function proxyEnvironment(given: Readonly<Record<string, string>>): Record<string, string> {
  const ours = [...Object.entries(IN_BOTH_CASES).flatMap(inBothCases), ...Object.entries(OTHERS)]
  const taken = new Set(Object.keys(given).map((name) => name.toLowerCase()))
  return Object.fromEntries(ours.filter(([name]) => !taken.has(name.toLowerCase())))
}

const inBothCases = ([name, value]: [string, string]): [string, string][] => [
  [name, value],
  [name.toLowerCase(), value],
]

/** Tells from the last words of a task whether it failed because it had no network. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'

/** Bytes of output, from its end, in which the words are looked for. */
export const MAX_LAST_WORDS_BYTES = 8 * 1024

const NO_NETWORK =
  'if the task needs the network, give it rules, "sandbox": {"network": {"allow": ["example.com:443"]}}, or that of the host: "sandbox": {"network": "host"} (the task had only loopback of its own)'

const ONLY_PROXY =
  'the task reaches the network only through the proxy that HTTP_PROXY and HTTPS_PROXY name: let the program use it (names are looked up there, too)'

/** What a task should do whose connection was refused. `refusal` is a sentence without its full stop. */
export const refusedRemedy = (refusal: string): string =>
  `${refusal}. If the task needs it, add a rule to sandbox.network.allow`

/** Words of the C library, curl, git, wget, Go, Node, Python, apt, Java and Rust when a lookup or a connection failed. */
const WORDS =
  /network is unreachable|could(?: not|n't) resolve (?:host|proxy)|unable to resolve host|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname|no address associated with hostname|bad address '|unknownhostexception|failed to lookup address|\bgetaddrinfo\b|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b|lookup \S{1,253} on \S{1,64}:53/i

/** What a task should do that failed under `plan` with `lastWords`. Undefined unless they ask for a network that it lacks. */
export function networkRemedy({ effective_sandbox }: ExecutionPlan, lastWords: string): string | undefined {
  const { profile, network, namespaces } = effective_sandbox
  if (profile !== 'linux_sandbox' || namespaces?.net !== true || !WORDS.test(lastWords)) return undefined
  return typeof network === 'object' ? ONLY_PROXY : NO_NETWORK
}

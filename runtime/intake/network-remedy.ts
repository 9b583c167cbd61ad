/** Tells from the last words of a task whether it failed because it had no network. Pure. */
import type { ExecutionPlan } from '../../shared/contract/runtime.ts'

/** Bytes of output, from its end, in which the words are looked for. */
export const MAX_LAST_WORDS_BYTES = 8 * 1024

/** What a task whose sandbox has no network should do. */
export const NETWORK_REMEDY =
  'if the task needs the network, give it that of the host: "sandbox": {"network": "host"} (the task had only loopback of its own)'

/** Words of the C library, curl, git, wget, Go, Node, Python, apt, Java and Rust when a lookup or a connection failed. */
const WORDS =
  /network is unreachable|could(?: not|n't) resolve (?:host|proxy)|unable to resolve host|temporary failure (?:in name resolution|resolving)|name or service not known|nodename nor servname|no address associated with hostname|bad address '|unknownhostexception|failed to lookup address|\bgetaddrinfo\b|\b(?:EAI_AGAIN|ENETUNREACH|ENOTFOUND)\b|lookup \S{1,253} on \S{1,64}:53/i

/** Whether `lastWords` of a task that failed under `plan` ask for a network that its sandbox does not have. */
export const lacksNetwork = ({ effective_sandbox }: ExecutionPlan, lastWords: string): boolean =>
  effective_sandbox.profile === 'linux_sandbox' && effective_sandbox.namespaces?.net === true && WORDS.test(lastWords)

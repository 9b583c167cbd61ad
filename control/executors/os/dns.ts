/**
 * Looks up a name: `{name, record, addrs | txt | cname | mx}`.
 *
 * Addresses come from the hosts file and DNS servers, in the order of preference of the system. DNS servers are queried
 * directly for the other records. A name without the record fails like a name that does not exist.
 */
import type { Resolver } from 'node:dns/promises'
import type { Static } from '@sinclair/typebox'
import { systemCodeOf } from '../../../shared/contract/errors.ts'
import { Type } from '../../../shared/contract/schema-builder.ts'
import { faultText } from '../../../shared/http/connection-fault.ts'
import { systemAddresses } from '../../../shared/http/system-addresses.ts'
import { boundedWait } from '../bounded-wait.ts'
import { ExecutionError, type ExecutorContext } from '../executor.ts'
import { ToolParams } from '../params.ts'
import type { OsTool } from './os.ts'

/** Maximum milliseconds of a lookup: up to three servers are queried. The timeout of the task may be shorter. */
export const MAX_LOOKUP_MS = 15_000

/** Timeout of one query in milliseconds, and the number of tries per server. */
const SERVER_ANSWER_MS = 5_000
const TRIES_PER_SERVER = 2

const RECORDS = ['ip', 'txt', 'cname', 'mx'] as const
type DnsRecord = (typeof RECORDS)[number]

export const dnsParams = new ToolParams(
  'dns',
  Type.Object({
    name: Type.String({
      missing: 'name is required',
      // A DNS message holds names of up to 253 characters. A trailing dot is allowed.
      maxLength: 254,
      pattern: '^[^\\s\\u0000-\\u001f]+$',
      expected: 'host name of at most 253 characters, without spaces',
      description: 'The name to look up.',
    }),
    record: Type.Optional(
      Type.Union(
        RECORDS.map((record) => Type.Literal(record)),
        { expected: 'ip, txt, cname or mx', description: 'What to look up: ip (default), txt, cname or mx.' },
      ),
    ),
  }),
)

export type DnsResult = { readonly name: string; readonly record: DnsRecord } & DnsAnswer

type DnsAnswer =
  /** IPv4 and IPv6 addresses, in the order in which a connection should try them. */
  | { readonly addrs: readonly string[] }
  /** TXT records, in the order of the answer. */
  | { readonly txt: readonly string[] }
  | { readonly cname: string }
  /** MX records by priority. Try the first one first. */
  | { readonly mx: readonly { readonly exchange: string; readonly priority: number }[] }

/** `servers` are DNS servers, each `address` or `address:port`. Default: those of the system. */
export const dns = (servers?: readonly string[]): OsTool => ({
  name: 'dns',
  params: dnsParams,
  execute: (input, context) => resolve(dnsParams.parse(input), servers, context),
})

async function resolve(
  { name, record = 'ip' }: Static<typeof dnsParams.schema>,
  servers: readonly string[] | undefined,
  context: ExecutorContext,
): Promise<DnsResult> {
  const { Resolver } = await import('node:dns/promises')
  const resolver = new Resolver({ timeout: SERVER_ANSWER_MS, tries: TRIES_PER_SERVER })
  if (servers !== undefined) resolver.setServers(servers)
  const what = `dns ${record} ${name}`
  await context.begin()
  try {
    const answer = await boundedWait(queries[record](resolver, name), {
      ...{ signal: context.signal, what, limitMs: MAX_LOOKUP_MS, missing: 'answer' },
      release: () => resolver.cancel(),
    })
    return { name, record, ...answer }
  } catch (error) {
    if (error instanceof ExecutionError) throw error
    throw new ExecutionError('external_failure', `${what}: ${fault(error, record)}`, { cause: error })
  }
}

const queries: Readonly<Record<DnsRecord, (resolver: Resolver, name: string) => Promise<DnsAnswer>>> = {
  async ip(_, name) {
    return { addrs: [...new Set(await systemAddresses(name))] }
  },
  async txt(resolver, name) {
    const strings = (await resolver.resolveTxt(name)).flat()
    return { txt: joinedStrings(strings) }
  },
  async cname(resolver, name) {
    const [cname] = await resolver.resolveCname(name)
    return { cname: cname ?? '' } // a name has exactly one, or the lookup fails: RFC 1034, 3.6.2
  },
  async mx(resolver, name) {
    const records = await resolver.resolveMx(name)
    const mx = records.map(({ exchange, priority }) => ({ exchange, priority }))
    return { mx: mx.sort((a, b) => a.priority - b.priority || (a.exchange < b.exchange ? -1 : 1)) }
  },
}

/** Maximum bytes of a string in a TXT record. Longer texts are split. */
const MAX_STRING_BYTES = 255

/**
 * Joins strings that were split only because of the maximum length. Bun returns the strings of all records in one list,
 * so texts that were split at other places stay separate, in their order.
 */
export function joinedStrings(strings: readonly string[]): string[] {
  const texts: string[] = []
  let continues = false
  for (const string of strings) {
    if (continues) texts.push(texts.pop() + string)
    else texts.push(string)
    continues = Buffer.byteLength(string) >= MAX_STRING_BYTES
  }
  return texts
}

function fault(error: unknown, record: DnsRecord): string {
  switch (systemCodeOf(error)) {
    case 'ENOTFOUND':
    case 'ENODATA':
      // Bun reports an unknown name and a missing record in the same way.
      return record === 'ip' ? 'no such name' : `no ${record} record found`
    case 'ESERVFAIL':
      return 'the server failed to answer'
    case 'EREFUSED':
      return 'the server refuses to answer'
    case 'ETIMEOUT':
    case 'ETIMEDOUT':
    case 'ECONNREFUSED':
      return 'no server answers'
    default:
      return faultText(error)
  }
}

/**
 * Looks names up as the system does: in `/etc/hosts`, then at the name servers of `/etc/resolv.conf`, with its search list.
 *
 * The resolver of libc would hold a thread for each name, and there are only a few, which also read and write files: four
 * names that no server answers would stop all of that. So c-ares asks, which needs no thread. It keeps answers for as
 * long as they say, and reads the settings once; name servers that change are followed here.
 */
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { dns } from 'bun'
import { systemCodeOf } from '../contract/errors.ts'
import { isLocalName } from '../egress/host.ts'

const HOSTS = '/etc/hosts'
const SETTINGS = '/etc/resolv.conf'

/** macOS has no such file for all of its networks, and its own resolver needs no thread either. */
const BACKEND = process.platform === 'darwin' ? 'system' : 'c-ares'

/** `localhost` is this machine even if no file says so: RFC 6761, 6.3. */
const LOOPBACK = ['127.0.0.1', '::1']

/** What the settings were when they were looked at last. */
let followed: string | undefined

/** The addresses of a name, in the order in which to try them. Rejects with a `code` such as `ENOTFOUND`. */
export async function systemAddresses(name: string): Promise<readonly string[]> {
  if (BACKEND === 'c-ares') await followSettings()
  try {
    return (await dns.lookup(name, { backend: BACKEND })).map(({ address }) => address)
  } catch (error) {
    if (isLocalName(name.toLowerCase().replace(/\.$/, ''))) return LOOPBACK
    const code = systemCodeOf(error)?.replace(/^DNS_/, '') ?? 'ENOTFOUND'
    throw Object.assign(new Error(`cannot look up ${JSON.stringify(name)}: ${code}`, { cause: error }), { code })
  }
}

/**
 * The addresses of an absolute name, which ends with a dot: no search list makes another name of it. c-ares asks no hosts
 * file about such a name, so that is read here.
 */
export async function absoluteAddresses(name: string): Promise<readonly string[]> {
  const hosts = await readFile(HOSTS, 'utf8').catch(() => '')
  const found = hostsAddressesIn(hosts, name.replace(/\.$/, ''))
  return found.length > 0 ? found : await systemAddresses(name)
}

/** The addresses of a name in a text such as `/etc/hosts`, in its order. */
export function hostsAddressesIn(text: string, name: string): string[] {
  const wanted = name.toLowerCase()
  return text.split('\n').flatMap((line) => {
    const [address, ...names] = line.replace(/#.*/, '').trim().split(/\s+/)
    return names.some((one) => one.toLowerCase() === wanted) ? [address!] : []
  })
}

async function followSettings(): Promise<void> {
  const stamp = stampOf(SETTINGS)
  const isFirst = followed === undefined
  if (stamp === followed) return
  followed = stamp
  if (isFirst) return // c-ares reads them for the lookup that follows
  const servers = nameServersIn(await readFile(SETTINGS, 'utf8').catch(() => ''))
  if (servers.length === 0) return
  const { setServers } = await import('node:dns')
  setServers(servers)
}

/** The name servers in a text such as `/etc/resolv.conf`, without those that only libc understands. */
export const nameServersIn = (text: string): string[] =>
  [...text.matchAll(/^[ \t]*nameserver[ \t]+([0-9a-fA-F:.]+)[ \t]*$/gm)].map(([, address]) => address!)

function stampOf(path: string): string {
  const status = statSync(path, { throwIfNoEntry: false })
  return status === undefined ? 'absent' : `${status.dev} ${status.ino} ${status.size} ${status.mtimeMs}`
}

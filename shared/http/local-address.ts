/**
 * Whether an address is one of this machine, as the kernel routes it.
 *
 * A list of interfaces does not tell: an interface without carrier (an idle bridge) and a local route (`ip route add local
 * 10.9.0.0/16 dev lo`) have addresses that connections reach, too. So the kernel is asked for the route to the address.
 */
import { ptr } from 'bun:ffi'
import { networkInterfaces } from 'node:os'
import { type IpAddress, ipText, parseIp } from '../egress/ip-address.ts'
import { loadLibc } from '../process/libc.ts'

const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const SOCK_RAW = 3
const SOCK_CLOEXEC = 0o2000000
const NETLINK_ROUTE = 0
const MSG_DONTWAIT = 0x40

// Source: linux/netlink.h, linux/rtnetlink.h. All numbers have the byte order of the machine, which is little-endian.
const NLM_F_REQUEST = 1
const NLMSG_ERROR = 2
const RTM_NEWROUTE = 24
const RTM_GETROUTE = 26
const RTA_DST = 1
const RTN_LOCAL = 2
const RTN_ANYCAST = 4
const HEADER_BYTES = 16
const ROUTE_BYTES = 12
const ATTRIBUTE_BYTES = 4
/** Offset of the type in a route. */
const ROUTE_TYPE = 7
const ANSWER_BYTES = 4096

/** There is no route, so a connection fails. */
const NO_ROUTE: readonly number[] = [101, 113] // ENETUNREACH, EHOSTUNREACH

const load = () =>
  loadLibc({
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    send: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
    recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' },
    close: { args: ['i32'], returns: 'i32' },
  } as const)
let libc: ReturnType<typeof load> | undefined

/** An address without an answer of the kernel counts as one of this machine. */
export function isLocalAddress(address: IpAddress): boolean {
  if (process.platform !== 'linux') return interfaceAddresses().includes(ipText(address))
  if (address.value === 0n) return true // connect() takes an unspecified address for that of loopback
  const answer = routeTo(address)
  if (answer === undefined) return true
  if (answer.readUInt16LE(4) === NLMSG_ERROR) return !NO_ROUTE.includes(-answer.readInt32LE(HEADER_BYTES))
  if (answer.readUInt16LE(4) !== RTM_NEWROUTE) return true
  return [RTN_LOCAL, RTN_ANYCAST].includes(answer[HEADER_BYTES + ROUTE_TYPE]!)
}

/** The kernel's answer to RTM_GETROUTE. It is there when `send` returns. Undefined if there is none. */
function routeTo(address: IpAddress): Buffer | undefined {
  libc ??= load()
  const fd = libc?.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE) ?? -1
  if (fd < 0) return undefined
  try {
    const request = routeRequest(address)
    if (Number(libc!.send(fd, ptr(request), request.length, 0)) !== request.length) return undefined
    const answer = Buffer.alloc(ANSWER_BYTES)
    const got = Number(libc!.recv(fd, ptr(answer), answer.length, MSG_DONTWAIT))
    return got >= HEADER_BYTES + ROUTE_BYTES ? answer : undefined
  } finally {
    libc!.close(fd)
  }
}

function routeRequest({ version, value }: IpAddress): Buffer {
  const bytes = version === 4 ? 4 : 16
  const request = Buffer.alloc(HEADER_BYTES + ROUTE_BYTES + ATTRIBUTE_BYTES + bytes)
  request.writeUInt32LE(request.length, 0)
  request.writeUInt16LE(RTM_GETROUTE, 4)
  request.writeUInt16LE(NLM_F_REQUEST, 6)
  request[HEADER_BYTES] = version === 4 ? AF_INET : AF_INET6
  request[HEADER_BYTES + 1] = bytes * 8
  request.writeUInt16LE(ATTRIBUTE_BYTES + bytes, HEADER_BYTES + ROUTE_BYTES)
  request.writeUInt16LE(RTA_DST, HEADER_BYTES + ROUTE_BYTES + 2)
  request.write(value.toString(16).padStart(bytes * 2, '0'), HEADER_BYTES + ROUTE_BYTES + ATTRIBUTE_BYTES, 'hex')
  return request
}

const interfaceAddresses = (): string[] =>
  Object.values(networkInterfaces()).flatMap((addresses = []) =>
    addresses.flatMap(({ address }) => {
      const found = parseIp(address)
      return found === undefined ? [] : [ipText(found)]
    }),
  )

/** A TCP server with a full accept queue that nobody empties, so connects hang. */
import { dlopen, ptr } from 'bun:ffi'
import { closeSync } from 'node:fs'
import { connect } from 'node:net'

export interface FullListener extends Disposable {
  /** `host:port`. */
  readonly address: string
}

const [AF_INET, SOCK_STREAM, SOCK_CLOEXEC] = [2, 1, 0o2000000]

export async function startFullListener(): Promise<FullListener> {
  const { symbols: libc } = dlopen('libc.so.6', {
    socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
    bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
    listen: { args: ['i32', 'i32'], returns: 'i32' },
    getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  })
  const address = new Uint8Array(16)
  address.set([AF_INET, 0, 0, 0, 127, 0, 0, 1])
  const fd = libc.socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
  const isListening =
    libc.bind(fd, ptr(address), address.length) === 0 &&
    libc.listen(fd, 0) === 0 &&
    libc.getsockname(fd, ptr(address), ptr(Uint32Array.of(address.length))) === 0
  if (!isListening) throw new Error('cannot listen on loopback')
  const port = (address[2]! << 8) | address[3]!
  // With a queue of 0 the kernel holds one connection.
  const holder = connect(port, '127.0.0.1')
  await new Promise<void>((resolve, reject) => holder.once('connect', resolve).once('error', reject))
  holder.on('error', () => {}) // the end of the listener resets it
  return {
    address: `127.0.0.1:${port}`,
    [Symbol.dispose]() {
      holder.destroy()
      closeSync(fd)
    },
  }
}

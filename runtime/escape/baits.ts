/**
 * Objects on the host that a sandbox must not reach: files and sockets in hidden directories, a process with IPC objects (a
 * listener on 127.0.0.1, an abstract socket, shared memory, a message queue), and a listener on 127.0.0.1 that plays the
 * taskmill API: it accepts every request, or those with a token. A planted secret is in all of them but the last.
 *
 * Only the sandbox may protect them, so their permissions let every user read the files and connect to the sockets. The host
 * records each connection, so that the verdict does not depend on the report of the program in the sandbox alone.
 */
import { chmodSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { createGuard } from '../../shared/http/guard.ts'
import { ownDirIn } from '../host/own-dirs.ts'

/** Prefix of a bait that is a socket with a path. */
const SOCKET = 'unix='

/** Digits of the beginning of a planted secret, which tells it from everything else, and of the rest, which nobody can guess. */
const MARK_DIGITS = 24
const REST_DIGITS = 32

const randomDigits = (count: number): string => crypto.getRandomValues(Buffer.alloc(count / 2)).toString('hex')

export interface Baits extends AsyncDisposable {
  /** `KIND=VALUE`, the argument of --bait. */
  readonly list: readonly string[]
  /** The planted secret. The list has only its beginning. */
  readonly secret: string
  /** Removes the baits. */
  collect(): Promise<Collected>
}

export interface Collected {
  /** Baits that an attempt reached: sockets with a connection, and `pid` if its process died. */
  readonly taken: readonly string[]
  /** The API if it required a token, and all it was asked was refused. */
  readonly refused: readonly string[]
}

export interface BaitOptions {
  /** Whether the API requires a token, which nobody has. Then a connection to it is no success. Default: false. */
  readonly hasToken?: boolean
}

/** Creates baits in each writable directory of `hiddenDirectories`. `program` is the path of taskmill-escape on the host. */
export async function layBaits(
  program: string,
  hiddenDirectories: readonly string[],
  options: BaitOptions = {},
): Promise<Baits> {
  const directories = hiddenDirectories.flatMap(makeIn)
  try {
    return await layIn(program, directories, options)
  } catch (error) {
    remove(directories)
    throw error
  }
}

async function layIn(
  program: string,
  directories: readonly string[],
  { hasToken = false }: BaitOptions,
): Promise<Baits> {
  const secrets = directories.map((directory) => join(directory, 'secret'))
  const mark = randomDigits(MARK_DIGITS)
  const secret = mark + randomDigits(REST_DIGITS)
  for (const path of secrets) writeFileSync(path, `${secret}\n`)
  const keeper = Bun.spawn([program, '--keep-baits', ...directories.map((directory) => join(directory, 'socket'))], {
    env: { TASKMILL_PLANTED: secret },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const lines = linesOf(keeper.stdout)
  const kept: string[] = []
  for (let line = await next(lines); line !== ''; line = await next(lines)) kept.push(line)
  const service = hasToken ? listenWithToken() : listenAsService()
  // The keeper makes no socket in a directory whose path is too long for a socket address.
  for (const bait of kept) if (bait.startsWith(SOCKET)) chmodSync(bait.slice(SOCKET.length), 0o777)

  let collected: Promise<Collected> | undefined
  const collect = () => {
    collected ??= takeAway(keeper, lines, directories, service)
    return collected
  }
  return {
    list: [...kept, service.bait, `planted=${mark}`, ...secrets.map((path) => `secret=${path}`)],
    secret,
    collect,
    [Symbol.asyncDispose]: async () => void (await collect()),
  }
}

const ACCEPTED = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'

interface StandIn {
  /** `service=PORT`. */
  readonly bait: string
  /** Closes the listener and returns what it has counted. */
  close(): { readonly accepted: number; readonly refused: number }
}

/** Stands in for an API without a token, which serves every caller. */
function listenAsService(): StandIn {
  let connections = 0
  const listener = Bun.listen({
    ...{ hostname: '127.0.0.1', port: 0 },
    socket: {
      open: () => void connections++,
      data: (socket) => void socket.end(ACCEPTED),
    },
  })
  return {
    bait: `service=${listener.port}`,
    close: () => {
      listener.stop(true)
      return { accepted: connections, refused: 0 }
    },
  }
}

/** Stands in for an API with a token: it checks requests as both services do. */
function listenWithToken(): StandIn {
  const guard = createGuard({ token: crypto.randomUUID(), allowedHosts: [], listeningHost: '127.0.0.1' })
  let [accepted, refused] = [0, 0]
  const server = Bun.serve({
    ...{ hostname: '127.0.0.1', port: 0 },
    fetch: (request) => {
      try {
        guard(request, new URL(request.url).pathname)
      } catch {
        refused++
        return new Response(null, { status: 401 })
      }
      accepted++
      return new Response(null)
    },
  })
  return {
    bait: `service=${server.port}`,
    close: () => {
      void server.stop(true)
      return { accepted, refused }
    },
  }
}

function makeIn(directory: string): string[] {
  try {
    const made = ownDirIn(directory, 'escape')
    chmodSync(made, 0o755)
    return [made]
  } catch {
    return [] // the directory does not exist or is not writable
  }
}

async function next(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next()
  if (done) throw new Error('who keeps the baits has ended: taskmill-escape does not run here')
  return value
}

async function takeAway(
  keeper: Subprocess<'pipe', 'pipe', 'inherit'>,
  lines: AsyncIterable<string>,
  directories: readonly string[],
  service: StandIn,
): Promise<Collected> {
  const taken = keeper.exitCode === null && keeper.signalCode === null ? [] : ['pid']
  const { accepted, refused } = service.close()
  if (accepted > 0) taken.push(service.bait)
  keeper.stdin.end()
  for await (const line of lines) taken.push(line)
  await keeper.exited
  remove(directories)
  return { taken, refused: accepted === 0 && refused > 0 ? [service.bait] : [] }
}

function remove(directories: readonly string[]): void {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop()!
    yield* lines
  }
}

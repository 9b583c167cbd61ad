/** Starts and stops the servers that are compared. */
import { mkdirSync, mkdtempSync, openSync } from 'node:fs'
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { builtProgram, compile, type ProgramName } from '../scripts/build.ts'
import { cgroupRemover } from '../scripts/service-cgroups.ts'
import type { BenchConfig } from './config.ts'
import type { Lifetime } from './lifetime.ts'
import { Connection } from './load/connection.ts'
import { get } from './load/requests.ts'
import type { Target } from './suite.ts'

/** Milliseconds that a server has to answer after its start, and to end after SIGTERM. A disk may stall for seconds. */
const PATIENCE_MS = 60_000

export interface RunningServer extends AsyncDisposable {
  readonly name: string
  readonly url: string
  /** Unknown for a server that ran before the bench. */
  readonly pid: number | undefined
  readonly dataDir: string | undefined
  /** From spawn to the first answer. */
  readonly readyMs: number | undefined
  /** Ends it as a service manager would, so that its data directory can be used again. */
  readonly stop: () => Promise<void>
}

export interface StartOptions {
  /** For the placeholders of its command, instead of their defaults. */
  readonly fill?: Readonly<Record<string, string>>
  /** One that an earlier start has used. Absent: a new one. */
  readonly dataDir?: string | undefined
}

export interface ServerTarget extends Target {
  /** A fresh server, unless it runs already. */
  start(options?: StartOptions): Promise<RunningServer>
}

/** How all servers of a suite are started and asked. */
export interface ServerKind {
  /** What answers as soon as the server is ready. */
  readonly healthPath: string
  /** What stands for `{key}` in a command. The port and the directory, `{port}` and `{dir}`, are added at the start. */
  readonly fill: Readonly<Record<string, string>>
}

/** Servers that the command line adds. */
export const givenTargets = (config: BenchConfig, kind: ServerKind, lifetime: Lifetime): ServerTarget[] => [
  ...config.command.map(({ name, value }) => commandTarget(name, value, kind, lifetime)),
  ...config.server.map(({ name, value }) => runningTarget(name, value.replace(/\/$/, ''))),
]

/** A copy of one of our executables: whoever builds dist/ anew meanwhile does not change what is measured. */
export async function copiedProgram(name: ProgramName, lifetime: Lifetime): Promise<string> {
  const copy = join(binDir(lifetime), name)
  await copyFile(await builtProgram(name), copy)
  return copy
}

/** An executable of ours that only the bench has. */
export async function compiledHere(entry: string, name: string, lifetime: Lifetime): Promise<string> {
  const outfile = join(binDir(lifetime), name)
  await compile(entry, outfile, { jitPolicy: 1 }) // ours set it when they listen
  return outfile
}

export function binDir({ dir }: Lifetime): string {
  const bin = join(dir, 'bin')
  mkdirSync(bin, { recursive: true })
  return bin
}

/** A server that a shell command starts. */
export function commandTarget(name: string, command: string, kind: ServerKind, lifetime: Lifetime): ServerTarget {
  return {
    name,
    description: command.replaceAll(`${lifetime.dir}/`, ''),
    async start({ fill, dataDir: given } = {}) {
      const dir = mkdtempSync(join(lifetime.dir, 'server-'))
      const dataDir = given ?? join(dir, 'data')
      mkdirSync(dataDir, { recursive: true })
      lifetime.atEnd(cgroupRemover(dataDir))
      const port = freePort()
      const filled = fillIn(command, { ...kind.fill, ...fill, dir: dataDir, port: String(port) })
      const stderrPath = join(dir, 'stderr')
      const start = performance.now()
      // Logs go nowhere: what reads them is no part of the server. exec: the process we know is the server itself.
      const child = lifetime.spawn(['/bin/sh', '-c', `exec ${filled}`], {
        cwd: dir,
        env: { PATH: process.env.PATH ?? '/usr/bin:/bin' },
        stderr: openSync(stderrPath, 'w'),
      })
      const url = `http://127.0.0.1:${port}`
      const hasEnded = child.exited.then(() => true)
      if (!(await answers(url, kind.healthPath, hasEnded))) {
        await lifetime.kill(child)
        throw new Error(`${name} does not answer on ${url}: ${await readFile(stderrPath, 'utf8')}`)
      }
      return {
        name,
        url,
        pid: child.pid,
        dataDir,
        readyMs: performance.now() - start,
        stop: async () => {
          child.kill('SIGTERM')
          const isGone = await Promise.race([hasEnded, Bun.sleep(PATIENCE_MS).then(() => false)])
          if (!isGone) throw new Error(`${name} does not end within ${PATIENCE_MS} ms`)
        },
        [Symbol.asyncDispose]: () => lifetime.kill(child),
      }
    },
  }
}

function runningTarget(name: string, url: string): ServerTarget {
  const unknown = { pid: undefined, dataDir: undefined, readyMs: undefined }
  const leftAlone = async () => {}
  return {
    name,
    description: url,
    start: async () => ({ name, url, ...unknown, stop: leftAlone, [Symbol.asyncDispose]: leftAlone }),
  }
}

const fillIn = (command: string, fill: Readonly<Record<string, string>>): string =>
  Object.entries(fill).reduce((text, [key, value]) => text.replaceAll(`{${key}}`, value), command)

/** A path as one word of a shell command. */
export const quoted = (path: string): string => `'${path.replaceAll("'", `'\\''`)}'`

/** Asks without a pause until the server answers. False when it has ended or time is up. */
async function answers(url: string, healthPath: string, hasEnded: Promise<boolean>): Promise<boolean> {
  const request = get(healthPath)
  const end = performance.now() + PATIENCE_MS
  let isOver = false
  hasEnded.then(() => {
    isOver = true
  })
  while (!isOver && performance.now() < end) {
    try {
      using connection = await Connection.open(url)
      if ((await connection.send(request)).status === 200) return true
    } catch {} // it does not listen yet
  }
  return false
}

export function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

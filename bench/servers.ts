/** The servers that are compared: how each is made, started and ended. */
import { openSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { builtProgram, compile } from '../scripts/build.ts'
import { formatDuration } from '../shared/duration.ts'
import type { BenchConfig } from './config.ts'
import type { Lifetime } from './lifetime.ts'
import { Connection } from './load/connection.ts'
import { get } from './load/requests.ts'

/** The one that the others are compared with. */
export const FLOOR = 'floor'

/** Milliseconds in which a server has to answer after its start. */
const START_PATIENCE_MS = 10_000

const NO_WRITES_MS = 24 * 3_600_000

export interface RunningServer extends AsyncDisposable {
  readonly name: string
  readonly url: string
  /** Unknown for a server that ran before the bench. */
  readonly pid: number | undefined
  readonly dataDir: string | undefined
  /** From spawn to the first answer of GET /health. */
  readonly readyMs: number | undefined
}

export interface Target {
  readonly name: string
  /** How it is started, for the report. */
  readonly description: string
  /** A fresh server, unless it runs already. `persistMs`: between two writes of the state file; absent: never. */
  start(options?: { persistMs?: number }): Promise<RunningServer>
}

/** Compiles ours, and lists all servers that this run measures. */
export async function prepareTargets(config: BenchConfig, lifetime: Lifetime): Promise<Target[]> {
  const bin = join(lifetime.dir, 'bin')
  await mkdir(bin)
  // A copy: whoever builds dist/ anew meanwhile does not change what is measured.
  await copyFile(await builtProgram('taskmill-control'), join(bin, 'taskmill-control'))
  await compile(join(import.meta.dir, 'floor.ts'), join(bin, FLOOR))
  const control = `'${join(bin, 'taskmill-control')}' --addr 127.0.0.1:{port} --data-dir {dir} --persist-interval {persist}`
  const floor = `'${join(bin, FLOOR)}' --port {port}`
  return [
    commandTarget('control', control, lifetime),
    commandTarget(FLOOR, floor, lifetime),
    commandTarget(`${FLOOR}+journal`, `${floor} --journal {dir}/journal`, lifetime),
    ...config.command.map(({ name, value }) => commandTarget(name, value, lifetime)),
    ...config.server.map(({ name, value }) => runningTarget(name, value.replace(/\/$/, ''))),
  ]
}

function commandTarget(name: string, command: string, lifetime: Lifetime): Target {
  return {
    name,
    description: command.replaceAll(`${lifetime.dir}/`, ''),
    async start({ persistMs = NO_WRITES_MS } = {}) {
      const dir = await mkdtemp(join(lifetime.dir, 'server-'))
      const dataDir = join(dir, 'data')
      await mkdir(dataDir)
      const port = freePort()
      const filled = command
        .replaceAll('{port}', String(port))
        .replaceAll('{dir}', dataDir)
        .replaceAll('{persist}', formatDuration(persistMs))
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
      if (!(await answers(url, hasEnded))) {
        await lifetime.kill(child)
        throw new Error(`${name} does not answer on ${url}: ${await readFile(stderrPath, 'utf8')}`)
      }
      const readyMs = performance.now() - start
      return { name, url, pid: child.pid, dataDir, readyMs, [Symbol.asyncDispose]: () => lifetime.kill(child) }
    },
  }
}

function runningTarget(name: string, url: string): Target {
  const server = { name, url, pid: undefined, dataDir: undefined, readyMs: undefined }
  return {
    name,
    description: url,
    start: async () => ({ ...server, [Symbol.asyncDispose]: async () => {} }),
  }
}

/** Asks without a pause until the server answers. False when it has ended or time is up. */
async function answers(url: string, hasEnded: Promise<boolean>): Promise<boolean> {
  const request = get('/health')
  const end = performance.now() + START_PATIENCE_MS
  let isOver = false
  hasEnded.then(() => {
    isOver = true
  })
  while (!isOver && performance.now() < end) {
    try {
      using connection = await Connection.open(url)
      if ((await connection.send(request)).status === 200) return true
    } catch {} // nobody listens yet
  }
  return false
}

function freePort(): number {
  const listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const { port } = listener
  listener.stop(true)
  return port
}

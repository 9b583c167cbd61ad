/**
 * Three replicas of control, two runtime services, and a database whose connections a test can cut: one link between each
 * replica and each server. All are gone at the end of the block.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CuttingLink, startCuttingLink } from './cutting-link.ts'
import { freePort } from './free-port.ts'
import { type PgBouncer, startPgBouncer } from './pgbouncer.ts'
import type { Postgres } from './postgres.ts'
import { Replica } from './replica.ts'
import { type Runtime, startRuntime } from './runtime.ts'
import { endProcessesOf } from './task-processes.ts'
import { tempDir } from './temp.ts'

const REPLICAS = 3
const RUNTIMES = ['one', 'two'] as const

/** Lines of a replica that tell how it ended. */
const LAST_LINES = 40

interface ClusterOptions {
  /** The primary, and its standby if replicas are to know it. */
  readonly servers: readonly Postgres[]
  readonly database: string
  /** Whether the replicas reach the database through PgBouncer in transaction mode. */
  readonly isPooled: boolean
  readonly leaseMs: number
}

/** Few places: tasks wait, and now and then one finds a queue full. */
const RUNTIME_FLAGS = ['--termination-grace-ms', '100', '--max-running-tasks', '6', '--max-queued-tasks', '4']

const CONTROL_FLAGS = ['--kill-grace', '100ms', '--shutdown-timeout', '50ms', '--max-concurrency', '16']

export class Cluster implements AsyncDisposable {
  readonly replicas: Replica[] = []
  /** For each replica, those to the servers of the database. */
  readonly links: CuttingLink[][] = []
  readonly #options: ClusterOptions
  readonly #temp = tempDir()
  readonly #processes = endProcessesOf(this.#temp.path)
  readonly #runtimes = new Map<string, { readonly port: number; service: Runtime }>()
  #pooler: PgBouncer | undefined

  private constructor(options: ClusterOptions) {
    this.#options = options
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const cluster = new Cluster(options)
    try {
      await cluster.#start()
      return cluster
    } catch (error) {
      await cluster[Symbol.asyncDispose]()
      throw error
    }
  }

  async #start(): Promise<void> {
    const { servers, isPooled } = this.#options
    if (isPooled) this.#pooler = await startPgBouncer(servers[0]!, 'transaction')
    for (const name of RUNTIMES) await this.#startRuntime(name, await freePort())
    for (let i = 0; i < REPLICAS; i++) this.replicas.push(await this.#newReplica(i))
    for (const replica of this.replicas) await replica.start()
  }

  async #newReplica(i: number): Promise<Replica> {
    const { database, servers, isPooled, leaseMs } = this.#options
    const parameters = isPooled ? '?prepare=false' : ''
    const urls =
      this.#pooler === undefined ? servers.map((server) => server.url(database)) : [this.#pooler.url(database)]
    const links: CuttingLink[] = []
    this.links.push(links)
    for (const url of urls) links.push(await startCuttingLink(Number(new URL(url).port)))
    const directory = this.file(`replica-${i}`)
    mkdirSync(directory)
    const addresses = join(directory, 'database')
    writeFileSync(addresses, urls.map((url, n) => `${links[n]!.through(url)}${parameters}\n`).join(''))
    const runtimes = [...this.#runtimes].flatMap(([name, { port }]) => [
      '--runtime-url',
      `${name}=http://127.0.0.1:${port},place=${name}`,
    ])
    return new Replica({
      port: await freePort(),
      dataDir: join(directory, 'data'),
      flags: ['--database-file', addresses, '--lease', `${leaseMs}ms`, ...runtimes, ...CONTROL_FLAGS],
      env: { SERVICE_SHELL_POLICY: 'open' },
    })
  }

  async #startRuntime(name: string, port: number): Promise<void> {
    const flags = ['--listen-addr', `127.0.0.1:${port}`, ...RUNTIME_FLAGS]
    const service = await startRuntime({ dataDir: this.file(`runtime-${name}`), flags })
    this.#runtimes.set(name, { port, service })
  }

  get runtimes(): readonly Runtime[] {
    return [...this.#runtimes.values()].map(({ service }) => service)
  }

  /** Placements that name a runtime service, or its label. */
  readonly placements = RUNTIMES.flatMap((name) => [{ runtime: name }, { labels: { place: name } }])

  async killRuntime(index: number): Promise<() => Promise<void>> {
    const name = RUNTIMES[index]!
    const { port, service } = this.#runtimes.get(name)!
    await service.stop('SIGKILL')
    await service.dispose()
    return () => this.#startRuntime(name, port)
  }

  /** Indexes of the replicas that accept graphs now. */
  async accepting(): Promise<number[]> {
    const found = await Promise.all(
      this.replicas.map(async ({ url }, i) => {
        const signal = AbortSignal.timeout(1_000)
        const status = await fetch(`${url}/readyz`, { signal })
          .then((response) => response.status)
          .catch(() => 0)
        return status === 200 ? [i] : []
      }),
    )
    return found.flat()
  }

  /** What the replicas have logged last, for people. Ends them. */
  async lastLines(): Promise<string> {
    for (const replica of this.replicas) await replica[Symbol.asyncDispose]()
    return this.replicas.map(({ url, lastLines }) => [url, ...lastLines.slice(-LAST_LINES)].join('\n')).join('\n\n')
  }

  /** A path that no service has anything to do with but by its name. */
  file(name: string): string {
    return join(this.#temp.path, name)
  }

  /** The lines of such a file. */
  lines(name: string): string[] {
    const path = this.file(name)
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const replica of this.replicas) await replica[Symbol.asyncDispose]()
    for (const { service } of this.#runtimes.values()) await service.dispose()
    for (const link of this.links.flat()) await link[Symbol.asyncDispose]()
    await this.#pooler?.[Symbol.asyncDispose]()
    await this.#processes[Symbol.asyncDispose]()
    this.#temp[Symbol.dispose]()
  }
}

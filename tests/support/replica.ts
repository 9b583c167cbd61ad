/**
 * A replica of control that a test kills, freezes and starts again. If it ends by itself, as one does that has lost its
 * lease, it is started again at once, as by a service manager.
 */
import { type SpawnedService, spawnService } from './service.ts'

interface ReplicaOptions {
  readonly port: number
  readonly dataDir: string
  readonly flags: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** Exit codes of a replica that is to be started again: another one has its lease; the database was away for long. */
const RESTARTED: ReadonlySet<number | null> = new Set([75, 1])

/** Messages of a service with a defect. */
const DEFECTS = ['the service ends because of a defect; start it again', 'an error was not caught']

export class Replica implements AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  /** What a service may not do, in words. */
  readonly faults: string[] = []
  /** Ends that nobody asked for: exit codes. */
  readonly ownEnds: number[] = []
  /** The last lines that it has logged, for people. */
  readonly lastLines: string[] = []
  readonly #options: ReplicaOptions
  #service: SpawnedService | undefined
  /** The start under way. */
  #starting: Promise<void> = Promise.resolve()
  #isToRun = false

  constructor(options: ReplicaOptions) {
    this.#options = options
    this.url = `http://127.0.0.1:${options.port}`
    this.dataDir = options.dataDir
  }

  /** Starts it, and does not wait until it listens: a replica may have to wait for its turn. */
  async start(): Promise<void> {
    this.#isToRun = true
    this.#starting = this.#spawn()
    await this.#starting
  }

  async #spawn(): Promise<void> {
    const { port, dataDir, flags, env = {} } = this.#options
    await this.#put()
    const service = await spawnService('taskmill-control', ['--addr', `127.0.0.1:${port}`], { dataDir, flags, env })
    this.#service = service
    void service.process.exited.then(() => this.#ended(service))
  }

  #ended(service: SpawnedService): void {
    if (!this.#isToRun || service !== this.#service) return
    const { exitCode, signalCode } = service.process
    if (RESTARTED.has(exitCode)) this.ownEnds.push(exitCode!)
    else this.faults.push(`${this.url} ended by itself: ${exitCode} ${signalCode}`)
    this.#starting = this.#spawn()
  }

  /** Kills it, or asks it to stop and waits. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    this.#isToRun = false
    await this.#starting
    this.#service?.process.kill(signal)
    await this.#put(signal)
  }

  /** What is left of the last process is looked at and removed. */
  async #put(signal?: string): Promise<void> {
    const service = this.#service
    if (service === undefined) return
    this.#service = undefined
    await service.process.exited
    const { exitCode } = service.process
    if (signal === 'SIGTERM' && exitCode !== 0 && !RESTARTED.has(exitCode))
      this.faults.push(`${this.url} was asked to stop and ended with ${exitCode}`)
    for (const line of service.log) {
      if (DEFECTS.includes(String(line.msg))) this.faults.push(`${this.url}: ${JSON.stringify(line)}`)
    }
    this.lastLines.push(...service.log.map((line) => JSON.stringify(line)), await service.stderr)
    await service.dispose()
  }

  freeze(): void {
    this.#service?.process.kill('SIGSTOP')
  }

  thaw(): void {
    this.#service?.process.kill('SIGCONT')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.thaw()
    await this.end('SIGKILL')
  }
}

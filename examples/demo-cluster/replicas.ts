/** The replicas of the demo, and requests to whichever of them answers. */
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { freePort } from '../../client/testing/free-port.ts'
import type { Postgres } from '../../scripts/postgres-server.ts'
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { isTerminal } from '../../shared/contract/task-status.ts'
import { childEnvironment } from '../demo/environment.ts'

const REPLICAS = 3

/** Short, so that the demo is: the default is 10 s. */
const LEASE = '3s'

/** Milliseconds for an answer of one replica. */
const ANSWER_MS = 5_000

/** Milliseconds without any answer, or without an end of any task, after which the demo gives up. */
const PATIENCE_MS = 120_000

const PAUSE_MS = 50

export interface ReplicasOptions {
  readonly program: string
  /** For data directories and logs. */
  readonly directory: string
  readonly servers: readonly Postgres[]
  /** Runtime services, as `--runtime-url` has them. */
  readonly urls: readonly string[]
  readonly signal: AbortSignal
}

interface Replica {
  readonly url: string
  readonly process: Subprocess
}

export class Replicas implements AsyncDisposable {
  readonly #replicas: Replica[] = []
  readonly #signal: AbortSignal

  private constructor(signal: AbortSignal) {
    this.#signal = signal
  }

  /** Resolves when one of them accepts graphs. */
  static async start({ program, directory, servers, urls, signal }: ReplicasOptions): Promise<Replicas> {
    const replicas = new Replicas(signal)
    try {
      const addresses = join(directory, 'database')
      writeFileSync(addresses, servers.map((server) => `${server.url()}\n`).join(''), { mode: 0o600 })
      for (let i = 0; i < REPLICAS; i++) {
        const address = `127.0.0.1:${await freePort()}`
        const flags = ['--addr', address, '--data-dir', join(directory, `${i}`), '--database-file', addresses]
        const process = Bun.spawn(
          [program, ...flags, '--lease', LEASE, ...urls.flatMap((url) => ['--runtime-url', url])],
          {
            ...{ cwd: directory, env: childEnvironment(), stdin: 'ignore', detached: true },
            ...{ stdout: openSync(join(directory, `${i}.log`), 'a'), stderr: 'ignore' },
          },
        )
        replicas.#replicas.push({ url: `http://${address}`, process })
      }
      await replicas.#ask('/readyz')
      return replicas
    } catch (error) {
      await replicas[Symbol.asyncDispose]()
      throw error
    }
  }

  get urls(): string[] {
    return this.#replicas.map(({ url }) => url)
  }

  /** The id of the graph, and the replica that runs it. However often the request arrives, it is one graph. */
  async submit(graph: object): Promise<{ readonly graphId: string; readonly owner: string }> {
    const init = { method: 'POST', headers: { 'idempotency-key': 'demo' }, body: JSON.stringify(graph) }
    const { url, answer } = await this.#ask('/tasks', init)
    return { graphId: ((await answer.json()) as SubmitResponse).graph_id, owner: url }
  }

  async recordsOf(graphId: string): Promise<TaskRecord[]> {
    const { answer } = await this.#ask(`/graphs/${graphId}/tasks`)
    return (await answer.json()) as TaskRecord[]
  }

  /** How many of its tasks have ended. */
  async endedOf(graphId: string): Promise<number> {
    return (await this.recordsOf(graphId)).filter(({ status }) => isTerminal(status)).length
  }

  /** Resolves when so many of its tasks have ended. Throws if none ends for long. */
  async untilEnded(graphId: string, count: number): Promise<void> {
    let last = -1
    let lastAt = performance.now()
    for (;;) {
      const ended = await this.endedOf(graphId)
      if (ended >= count) return
      if (ended !== last) lastAt = performance.now()
      last = ended
      if (performance.now() - lastAt > PATIENCE_MS) throw new Error(`only ${ended} tasks have ended`)
      await this.#pause()
    }
  }

  /** Kills the replica at `url` with SIGKILL. */
  async kill(url: string): Promise<void> {
    const replica = this.#replicas.find((each) => each.url === url)!
    this.#replicas.splice(this.#replicas.indexOf(replica), 1)
    replica.process.kill('SIGKILL')
    await replica.process.exited
  }

  /** The first answer that is a success, of whichever replica. */
  async #ask(path: string, init: RequestInit = {}): Promise<{ readonly url: string; readonly answer: Response }> {
    const askedAt = performance.now()
    for (; performance.now() - askedAt < PATIENCE_MS; await this.#pause()) {
      for (const { url } of this.#replicas) {
        const signal = AbortSignal.timeout(ANSWER_MS)
        const answer = await fetch(url + path, { ...init, signal }).then(wholeAnswer, () => undefined)
        if (answer?.ok) return { url, answer }
        if (answer !== undefined && answer.status !== 503)
          throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
      }
    }
    throw new Error(`no replica answers ${path}`)
  }

  async #pause(): Promise<void> {
    this.#signal.throwIfAborted()
    await Bun.sleep(PAUSE_MS)
    this.#signal.throwIfAborted()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { process } of this.#replicas) process.kill('SIGKILL')
    await Promise.all(this.#replicas.map(({ process }) => process.exited))
  }
}

/** Undefined if the connection ends before the answer does. */
const wholeAnswer = (answer: Response): Promise<Response | undefined> =>
  answer.arrayBuffer().then(
    (body) => new Response(body, answer),
    () => undefined,
  )

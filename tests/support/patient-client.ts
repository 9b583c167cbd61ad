/**
 * A client of several replicas of control. It tries them in turn until one answers: a replica may be away, or not the one
 * that can answer (503). What it sends may arrive more than once.
 */
import type { TaskRecord } from '../../shared/contract/control.ts'
import type { Random } from './random.ts'

/** Milliseconds for an answer, beyond those that the request itself asks to wait. A frozen replica never answers. */
const ANSWER_MS = 4_000

/** Milliseconds after which a replica that answers was to be found. */
const PATIENCE_MS = 90_000

/** Milliseconds between two rounds through all of them. */
const PAUSE_MS = 25

export class PatientClient {
  readonly #urls: () => readonly string[]
  readonly #random: Random
  #isOver = false

  constructor(urls: () => readonly string[], random: Random) {
    this.#urls = urls
    this.#random = random
  }

  /** The first answer that is no 503, with its whole body. */
  async fetch(path: string, init: RequestInit = {}): Promise<Response> {
    const waitMs = Number(/wait_ms=(\d+)/.exec(path)?.[1] ?? 0)
    const end = performance.now() + PATIENCE_MS
    let last = ''
    while (performance.now() < end) {
      const urls = this.#urls()
      const first = this.#random(urls.length)
      for (let i = 0; i < urls.length && !this.#isOver; i++) {
        const url = urls[(first + i) % urls.length]!
        try {
          const signal = AbortSignal.timeout(ANSWER_MS + waitMs)
          const response = await fetch(url + path, { ...init, signal })
          const body = await response.arrayBuffer()
          if (response.status !== 503) return new Response(body.byteLength > 0 ? body : null, response)
          last = new TextDecoder().decode(body)
        } catch (error) {
          last = String(error)
        }
      }
      if (this.#isOver) break
      await Bun.sleep(PAUSE_MS)
    }
    throw new Error(`no replica answered ${init.method ?? 'GET'} ${path}: ${last}`)
  }

  /** All tasks. A list may lack those of a replica that is gone, until another one has adopted them. */
  async list(): Promise<TaskRecord[]> {
    let response = await this.fetch('/tasks')
    for (const end = performance.now() + PATIENCE_MS; response.headers.has('x-missing-replicas'); ) {
      if (performance.now() > end)
        throw new Error(`replicas are missing: ${response.headers.get('x-missing-replicas')}`)
      await Bun.sleep(PAUSE_MS)
      response = await this.fetch('/tasks')
    }
    if (response.status !== 200) throw new Error(`GET /tasks: ${response.status} ${await response.text()}`)
    return (await response.json()) as TaskRecord[]
  }

  /** Gives up what is asked now. */
  stop(): void {
    this.#isOver = true
  }
}

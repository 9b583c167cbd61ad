/**
 * Sends generated requests to both services, started for it, and looks whether they keep what they promise whatever a
 * caller sends:
 *
 * - each request gets an answer in time, and it is a described one (`answer-oracle.ts`): no 5xx;
 * - every accepted graph ends, at the latest when it is cancelled;
 * - afterwards the services work, and have logged no error;
 * - nothing leaks: no process, no reservation, no descriptor, and memory grows no further with the number of requests.
 *
 * Several lanes send at the same time, each with its own seed. A failure names the seed of its lane and shows the request
 * as a line with curl.
 */
import { expect } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from '@sinclair/typebox'
import fc from 'fast-check'
import { describedControl, describedRuntime } from '../../../scripts/described-apps.ts'
import { ErrorResponse as ControlError } from '../../../shared/contract/control.ts'
import type { ListedPause } from '../../../shared/contract/pauses.ts'
import { ErrorResponse as RuntimeError } from '../../../shared/contract/runtime.ts'
import { hasEnded } from '../../../shared/contract/runtime-status.ts'
import { isTerminal } from '../../../shared/contract/task-status.ts'
import type { OpenApiDocument } from '../../../shared/http/openapi/document.ts'
import { describedRoutes } from '../../../shared/http/openapi/route.ts'
import { type Footprint, footprintOf } from '../footprint.ts'
import { hasDatabase } from '../on-database.ts'
import { type Pair, startPair } from '../pair.ts'
import type { LogLine } from '../service.ts'
import { until } from '../until.ts'
import { AnswerOracle } from './answer-oracle.ts'
import { listedTools, mcpMessages } from './mcp-messages.ts'
import { type PlannedRequest, requestsOf } from './requests.ts'
import { MARKER } from './safe-values.ts'
import { curlLine, exchange, type WireAnswer, type WireRequest } from './wire.ts'

/** Requests that are under way at the same time. */
const LANES = 4

const WIRE_LIMITS = {
  answerMs: 30_000, // only a hang takes so long, also on a busy machine
  streamMs: 20,
  silenceMs: 500,
}

/** After so many requests everything has to end: approvals that nobody gives would fill the service. */
const CASES_A_STAGE = 1_000

/** Bytes of resident memory that a request of the second half may leave behind on average. Caches fill in the first half. */
const MAX_BYTES_A_REQUEST = 4_096

/** Bytes that resident memory varies by from one moment to the next, whatever the requests. */
const MEMORY_NOISE_BYTES = 48 * 1024 * 1024

/** Descriptors that a service may have opened for good: databases, segments, connections between the services. */
const DESCRIPTOR_NOISE = 24

export interface FuzzOptions {
  readonly cases: number
  readonly seed: number
}

export interface FuzzFigures {
  readonly answersByStatus: Readonly<Record<string, number>>
  readonly controlBytesARequest: number
  readonly runtimeBytesARequest: number
}

export async function fuzz({ cases, seed }: FuzzOptions): Promise<FuzzFigures> {
  await using pair = await startPair({
    controlFlags: [
      ...['--max-body-bytes', '1048576', '--max-stored-tasks', '10000', '--event-history', '1000'],
      ...['--kill-grace', '100ms', '--max-fan-out', '50', '--retention', '1m', '--persist-interval', '1s'],
      ...['--max-cached-outcomes', '100', '--http-policy', 'public'],
    ],
    runtimeFlags: [
      ...['--max-body-bytes', '1048576', '--max-running-tasks', '8', '--max-queued-tasks', '1000'],
      ...['--termination-grace-ms', '100', '--result-retention-secs', '5', '--tenant-quota', 'limited=slots:1'],
    ],
  })
  const run = new Run(pair)
  await run.prepare()
  const stageSize = Math.min(CASES_A_STAGE, Math.ceil(cases / 2))
  let warm: { readonly footprint: Footprints; readonly sent: number } | undefined
  let sent = 0
  for (let stage = 0; sent < cases; stage++) {
    await run.send(stageSize, seed + stage * LANES)
    await run.comeToRest()
    sent += stageSize
    if (sent >= cases / 2) warm ??= { footprint: run.footprint(), sent }
  }
  const grown = await run.checkFootprint(warm!.footprint, sent - warm!.sent)
  await run.checkHealth()
  return { answersByStatus: run.answersByStatus, ...grown }
}

/** Under test at the same time. */
type ServiceName = 'control' | 'runtime'

interface Target {
  readonly name: ServiceName
  readonly url: string
  readonly pid: number
  readonly oracle: AnswerOracle
  readonly requests: fc.Arbitrary<PlannedRequest>
}

type Footprints = Readonly<Record<ServiceName, Footprint>>

class Run {
  readonly #pair: Pair
  readonly #ids = new KnownIds()
  #targets: readonly Target[] = []
  readonly answersByStatus: Record<string, number> = {}

  constructor(pair: Pair) {
    this.#pair = pair
  }

  async prepare(): Promise<void> {
    const { control, runtime } = this.#pair
    const tools = await listedTools(control.url)
    this.#targets = [
      await this.#target('control', describedRoutes(describedControl({ hasDatabase })), ControlError, {
        'POST /mcp': mcpMessages(tools),
      }),
      await this.#target('runtime', describedRoutes(describedRuntime()), RuntimeError, {}),
    ]
    await control.run({ type: 'noop' })
    await runtime.runScript('exit 0')
  }

  async #target(
    name: ServiceName,
    routes: ReturnType<typeof describedRoutes>,
    errorSchema: TSchema,
    bodies: Parameters<typeof requestsOf>[1],
  ): Promise<Target> {
    const { url, process } = this.#pair[name]
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as OpenApiDocument
    const oracle = new AnswerOracle(routes, errorSchema)
    return { name, url, pid: process.pid, oracle, requests: requestsOf(document, bodies) }
  }

  /** Sends `count` requests in lanes. */
  async send(count: number, seed: number): Promise<void> {
    const lanes = Array.from({ length: LANES }, (_, lane) => this.#lane(Math.ceil(count / LANES), seed + lane))
    await Promise.all(lanes)
  }

  async #lane(numRuns: number, seed: number): Promise<void> {
    const requests = fc.oneof(
      ...this.#targets.map((target) => {
        const weight = target.name === 'control' ? 2 : 1
        return { weight, arbitrary: target.requests.map((request) => ({ target, request })) }
      }),
    )
    const property = fc.asyncProperty(requests, ({ target, request }) => this.#ask(target, request))
    const details = await fc.check(property, { numRuns, seed, interruptAfterTimeLimit: 30 * 60_000 })
    if (!details.failed) return
    const cause = details.errorInstance instanceof Error ? details.errorInstance.message : 'the lane was interrupted'
    throw new Error(`fuzzing failed with seed ${seed} (path ${details.counterexamplePath}): ${cause}`)
  }

  async #ask({ url, oracle }: Target, planned: PlannedRequest): Promise<void> {
    const request = this.#ids.fill(planned)
    try {
      const answer = await exchange(url, request, { ...WIRE_LIMITS, mayFollow: isFollowing(request) })
      if (answer === 'silent') return
      this.answersByStatus[answer.status] = (this.answersByStatus[answer.status] ?? 0) + 1
      this.#ids.learn(answer)
      oracle.check(planned, answer)
    } catch (error) {
      throw new Error(`${error instanceof Error ? error.message : error}\n  ${curlLine(url, request)}`)
    }
  }

  /** Cancels what goes on. Then everything has to end, and nothing may be left of it. */
  async comeToRest(): Promise<void> {
    const { control, runtime } = this.#pair
    await until(
      async () => {
        const response = await control.fetch('/graphs?state=running&limit=1000')
        const going = (await response.json()) as { graph_id: string }[]
        const answers: string[] = []
        for (const { graph_id } of going) {
          const cancel = await control.fetch(`/graphs/${graph_id}/cancel`, { method: 'POST' })
          answers.push(await cancel.text(), await (await control.fetch(`/graphs/${graph_id}/tasks`)).text())
        }
        // A graph of a request that was left may be accepted only now.
        const live = (await control.list()).filter(({ status }) => !isTerminal(status))
        return { going, answers, live }
      },
      ({ going, live }) => going.length === 0 && live.length === 0,
    )
    await until(
      async () => {
        const going = (await runtime.list()).filter(({ status }) => !hasEnded(status))
        for (const { task_id } of going) await this.#killOwned(task_id)
        return going
      },
      (going) => going.length === 0,
    )
    await this.#pair.isQuiet()
    expect((await runtime.resources()).reserved).toEqual({ task_slots: 0, memory_bytes: 0, pids: 0 })
    await until(
      () => this.#targets.flatMap(({ name, pid }) => childrenOf(pid).map((child) => `${name}: ${child}`)),
      (children) =>
        children.every((child) => /^runtime: \d+ .*(?:launcher|taskmill)/.test(child)) && children.length <= 1,
    )
  }

  async #killOwned(id: string): Promise<void> {
    const { runtime } = this.#pair
    const owner = /requires owner '(.*)'/.exec(await (await runtime.kill(id)).text())?.[1]
    if (owner !== undefined) await runtime.kill(id, { 'x-service-owner': owner })
  }

  footprint(): Footprints {
    const [control, runtime] = this.#targets.map(({ pid }) => footprintOf(pid))
    return { control: control!, runtime: runtime! }
  }

  /** Throws if a service has kept descriptors or memory for each of `requests` requests. */
  async checkFootprint(before: Footprints, requests: number) {
    const grown = (name: ServiceName) => this.footprint()[name].bytes - before[name].bytes
    for (const { name } of this.#targets) {
      await until(
        () => this.footprint()[name].descriptors - before[name].descriptors,
        (more) => more <= DESCRIPTOR_NOISE,
      )
      const most = MEMORY_NOISE_BYTES + requests * MAX_BYTES_A_REQUEST
      // Only after a while is the heap collected, and memory returned.
      await until(
        () => grown(name),
        (bytes) => bytes < most,
      ).catch(() => expect(grown(name), `bytes that ${name} keeps of ${requests} requests`).toBeLessThan(most))
    }
    return {
      controlBytesARequest: Math.round(grown('control') / requests),
      runtimeBytesARequest: Math.round(grown('runtime') / requests),
    }
  }

  /** Both services do what they are for, once a request that paused them is undone, and have logged no error. */
  async checkHealth(): Promise<void> {
    const { control, runtime } = this.#pair
    expect((await control.fetch('/readyz')).status).toBe(200)
    expect((await runtime.fetch('/readyz')).status).toBe(200)
    const paused = (await (await control.fetch('/pauses')).json()) as readonly ListedPause[]
    for (const { type } of paused) await control.fetch('/resume', { method: 'POST', body: JSON.stringify({ type }) })
    await control.submit([
      { id: 'last-1', type: 'shell', params: { command: 'echo', args: ['hello'] } },
      { id: 'last-2', type: 'runtime.script', params: { script: 'echo there' }, depends_on: ['last-1'] },
    ])
    expect((await control.ended('last-1')).status).toBe('success')
    expect((await control.ended('last-2')).status).toBe('success')
    expect(errorsIn(control.log)).toEqual([])
    expect(errorsIn(runtime.log)).toEqual([])
  }
}

const errorsIn = (log: readonly LogLine[]): readonly LogLine[] => log.filter(({ level }) => level === 'error')

/** Whether a log is followed, which sends nothing before the task writes. */
const isFollowing = ({ target }: WireRequest): boolean => /[?&]follow=/.test(target)

/** Ids that the services have given, the newest first. */
class KnownIds {
  readonly #known: Record<string, string[]> = { graph: [], task: [], handle: [], cursor: [] }

  fill({ method, target, headers, body }: PlannedRequest): WireRequest {
    const fill = (text: string) => text.replaceAll(MARKER, (_, kind, n) => this.#known[kind]![Number(n)] ?? 'unknown')
    return {
      ...{ method, target: fill(target) },
      headers: headers.map(([name, value]) => [name, fill(value)]),
      body: typeof body === 'string' ? new TextEncoder().encode(fill(body)) : body,
    }
  }

  learn({ body, headers }: WireAnswer): void {
    const [graph] = matches(body, /"graph_id":\s*"([\w.-]{1,128})"/)
    const [task] = matches(body, /"(?:task_ids":\s*\[|task_id":|id":)\s*"([\w.-]{1,128})"/)
    const [handle] = matches(body, /"handle_id":\s*"([\w.-]{1,128})"/)
    const cursor = headers.get('x-next-cursor')
    for (const [kind, id] of Object.entries({ graph, task, handle, cursor })) {
      if (id !== undefined) this.#known[kind] = [id, ...this.#known[kind]!.filter((one) => one !== id)].slice(0, 4)
    }
  }
}

const matches = (text: string, pattern: RegExp): string[] => pattern.exec(text.slice(0, 2_000))?.slice(1) ?? []

/** Processes that the service has started and that are there. */
function childrenOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    try {
      const children = readFileSync(join(`/proc/${pid}/task`, thread, 'children'), 'utf8').trim()
      return children === '' ? [] : children.split(' ').map((child) => `${child} ${commandOf(child)}`)
    } catch {
      return [] // the thread is gone
    }
  })
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return 'gone'
  }
}

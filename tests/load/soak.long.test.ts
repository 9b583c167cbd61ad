/**
 * Goal: services that run for long keep their speed, and what they hold does not grow. Method: both services with short
 * retention, and clients that submit, read, watch, follow, cancel and delete at a steady rate, for two minutes, or an hour
 * nightly (TASKMILL_LOAD_SECONDS). Descriptors and memory are sampled all the time, now and then after the collection of all
 * garbage. The slope of the latter counts after a warm-up (`steadySlope`): code is compiled and caches fill meanwhile. A run
 * that is too short for a slope may add no more than memory varies by anyway.
 */
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { SubmitResponse } from '../../shared/contract/submission.ts'
import { type Footprint, footprintOf, quantileOf, steadySlope } from '../support/footprint.ts'
import { HeapMeter, type Held } from '../support/heap-meter.ts'
import { type Pair, startPair } from '../support/pair.ts'
import { type Random, randomNumbers, SEED } from '../support/random.ts'
import { tempDir } from '../support/temp.ts'
import { until } from '../support/until.ts'
import { secondsOf } from './seconds.ts'

const SECONDS = secondsOf({ usual: 120, nightly: 3_600 })
const SAMPLES = 120
/** Of so many samples one follows a collection: in an hour, one each two and a half minutes. */
const COLLECT_EACH = 5

/** Milliseconds between two rounds of each kind of client. */
const [SUBMIT_EVERY_MS, READ_EVERY_MS, WATCH_EVERY_MS, REMOVE_EVERY_MS] = [100, 20, 250, 500]

/** Resident memory varies by so much whatever happens. */
const MEMORY_NOISE_BYTES = 48 * 1024 * 1024
const MAX_BYTES_AN_HOUR = 16 * 1024 * 1024
const DESCRIPTOR_NOISE = 24

/** Only a service that stalls takes so long, also on a busy machine. */
const MAX_P99_MS = 5_000

const FLAGS = {
  controlFlags: [
    ...['--retention', '10s', '--max-stored-tasks', '5000', '--event-history', '2000', '--persist-interval', '2s'],
    ...['--kill-grace', '200ms'],
  ],
  runtimeFlags: ['--result-retention-secs', '5', '--max-running-tasks', '4', '--termination-grace-ms', '200'],
  controlEnv: { SERVICE_SHELL_POLICY: 'open' },
}

const SERVICES = ['control', 'runtime'] as const
type Service = (typeof SERVICES)[number]

type Sample<T> = { readonly minutes: number } & Readonly<Record<Service, T>>
type Meters = Readonly<Record<Service, HeapMeter>>

class Soak {
  readonly #pair: Pair
  readonly #random: Random
  /** Graphs of late, the newest last. */
  readonly #graphs: string[] = []
  #isOver = false
  #submitted = 0
  readonly #readMs: number[] = []
  readonly #samples: Sample<Footprint>[] = []
  /** After the collection of all garbage. */
  readonly #collected: Sample<Held>[] = []
  readonly #meters: Meters

  constructor(pair: Pair, meters: Meters, random: Random) {
    this.#pair = pair
    this.#meters = meters
    this.#random = random
  }

  async run(seconds: number): Promise<void> {
    const clients = [
      this.#every(SUBMIT_EVERY_MS, () => this.#submit()),
      this.#every(READ_EVERY_MS, () => this.#read()),
      this.#every(WATCH_EVERY_MS, () => this.#watch()),
      this.#every(REMOVE_EVERY_MS, () => this.#remove()),
    ]
    const began = performance.now()
    for (let i = 1; i <= SAMPLES; i++) {
      await Promise.race([Bun.sleep((seconds * 1_000) / SAMPLES), Promise.all(clients)])
      const minutes = (performance.now() - began) / 60_000
      const [control, runtime] = SERVICES.map((which) => this.#pair[which].process.pid) as [number, number]
      this.#samples.push({ minutes, control: footprintOf(control), runtime: footprintOf(runtime) })
      if (i % COLLECT_EACH !== 0) continue
      const held = {
        control: await this.#meters.control.look(control),
        runtime: await this.#meters.runtime.look(runtime),
      }
      this.#collected.push({ minutes, ...held })
    }
    this.#isOver = true
    await Promise.all(clients)
  }

  figures() {
    const minutes = this.#collected.map((sample) => sample.minutes)
    const of = (which: Service) => {
      const slopeOf = (field: keyof Held) => {
        const slope = steadySlope(
          minutes,
          this.#collected.map((sample) => sample[which][field]),
        )
        return slope === undefined ? undefined : Math.round(slope)
      }
      return {
        ...this.#collected.at(-1)![which],
        mostBytes: Math.max(...this.#samples.map((sample) => sample[which].bytes)),
        descriptors: this.#samples.at(-1)![which].descriptors,
        heapBytesAnHour: slopeOf('heapBytes'),
        residentBytesAnHour: slopeOf('residentBytes'),
      }
    }
    const round = (ms: number) => Math.round(ms * 10) / 10
    return {
      ...{ seconds: SECONDS, seed: SEED, graphs: this.#submitted, reads: this.#readMs.length },
      readMs: { p50: round(quantileOf(this.#readMs, 0.5)), p99: round(quantileOf(this.#readMs, 0.99)) },
      ...{ control: of('control'), runtime: of('runtime') },
    }
  }

  /** Memory that the second half has added to the most that the first half had. */
  grown(which: Service): number {
    const most = (samples: readonly Sample<Held>[]) => Math.max(...samples.map((sample) => sample[which].residentBytes))
    const half = this.#collected.length / 2
    return most(this.#collected.slice(half)) - most(this.#collected.slice(0, half))
  }

  async #every(ms: number, act: () => Promise<void>): Promise<void> {
    for (let next = performance.now(); !this.#isOver; next = Math.max(next + ms, performance.now() - 1_000)) {
      await Bun.sleep(Math.max(0, next - performance.now()))
      await act()
    }
  }

  async #submit(): Promise<void> {
    const random = this.#random
    const tasks: object[] = [
      { id: 'a', type: 'noop', params: { message: 'x'.repeat(random(500)) } },
      {
        id: 'b',
        type: 'shell',
        params: { script: `echo ${random(1_000)}; exit ${random(4) === 0 ? 1 : 0}` },
        retry: 1,
      },
      { id: 'c', type: 'noop', depends_on: ['a', 'b'], run_if: 'always' },
    ]
    if (random(4) === 0)
      tasks.push({ id: 'd', type: 'runtime.script', params: { script: 'echo one; sleep 0.1; echo two' } })
    if (random(20) === 0) tasks.push({ id: 'e', type: 'approval', params: { message: 'Go?' }, timeout: 2_000 })
    const response = await this.#pair.control.post({ scope: 'graph', tasks })
    expect(response.status).toBe(202)
    this.#graphs.push(((await response.json()) as SubmitResponse).graph_id)
    if (this.#graphs.length > 50) this.#graphs.shift()
    this.#submitted++
  }

  #anyGraph(): string {
    return this.#graphs[this.#random(this.#graphs.length)] ?? 'none-yet'
  }

  async #read(): Promise<void> {
    const id = this.#anyGraph()
    const { control, runtime } = this.#pair
    const paths = [
      '/tasks?limit=50',
      '/graphs?limit=20',
      `/graphs/${id}`,
      `/graphs/${id}/tasks/b`,
      '/metrics',
      '/runtime',
    ]
    const inRuntime = this.#random(5) === 0
    const path = inRuntime ? '/api/v1/tasks?limit=50' : paths[this.#random(paths.length)]!
    const began = performance.now()
    const response = await (inRuntime ? runtime : control).fetch(path)
    await response.text()
    this.#readMs.push(performance.now() - began)
    expect([path, response.status < 500]).toEqual([path, true])
  }

  /** Follows a graph to its end, or a log for a moment. */
  async #watch(): Promise<void> {
    const id = this.#anyGraph()
    const { control } = this.#pair
    if (this.#random(2) === 0) {
      await (await control.fetch(`/graphs/${id}/events?until=ended`)).text()
      return
    }
    const leaving = new AbortController()
    const timer = setTimeout(() => leaving.abort(), 1 + this.#random(200))
    const followed = control.fetch(`/graphs/${id}/tasks/d/logs?follow=true`, { signal: leaving.signal })
    await followed.then((response) => response.text()).catch(() => undefined) // left by ourselves
    clearTimeout(timer)
  }

  async #remove(): Promise<void> {
    const path = `/graphs/${this.#anyGraph()}`
    const { control } = this.#pair
    const response =
      this.#random(2) === 0
        ? await control.fetch(`${path}/cancel`, { method: 'POST' })
        : await control.fetch(path, { method: 'DELETE' })
    await response.text()
  }
}

test(
  `both services hold no more after ${SECONDS} s of work than before (seed ${SEED})`,
  async () => {
    using dir = tempDir()
    const meters = {
      control: new HeapMeter(join(dir.path, 'control')),
      runtime: new HeapMeter(join(dir.path, 'runtime')),
    }
    await using pair = await startPair({
      ...FLAGS,
      controlEnv: { ...FLAGS.controlEnv, ...meters.control.env },
      runtimeEnv: meters.runtime.env,
    })
    const before = { control: footprintOf(pair.control.process.pid), runtime: footprintOf(pair.runtime.process.pid) }
    const soak = new Soak(pair, meters, randomNumbers(SEED))
    await soak.run(SECONDS)
    const figures = soak.figures()
    process.stdout.write(`soak: ${JSON.stringify(figures)}\n`)
    expect(figures.graphs).toBeGreaterThan(SECONDS)
    expect(figures.readMs.p99).toBeLessThan(MAX_P99_MS)
    for (const which of SERVICES) {
      const { heapBytesAnHour = 0, residentBytesAnHour = 0 } = figures[which]
      expect(heapBytesAnHour, `bytes an hour of the heap of ${which}`).toBeLessThan(MAX_BYTES_AN_HOUR)
      expect(residentBytesAnHour, `bytes an hour of ${which}`).toBeLessThan(MAX_BYTES_AN_HOUR)
      expect(soak.grown(which), `bytes that ${which} has gained in the second half`).toBeLessThan(MEMORY_NOISE_BYTES)
      await until(
        () => footprintOf(pair[which].process.pid).descriptors - before[which].descriptors,
        (more) => more <= DESCRIPTOR_NOISE,
      )
      expect(pair[which].log.filter(({ level }) => level === 'error')).toEqual([])
    }
    await until(
      async () => (await (await pair.control.fetch('/graphs?state=running')).json()) as object[],
      (running) => running.length === 0,
    )
    await pair.isQuiet()
  },
  (SECONDS + 600) * 1_000,
)

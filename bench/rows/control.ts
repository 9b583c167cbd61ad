/** The rows of control: its floor is the one with a journal. */
import { join } from 'node:path'
import { onOneCore } from '../affinity.ts'
import type { BenchConfig } from '../config.ts'
import { submit } from '../control/submit.ts'
import type { Lifetime } from '../lifetime.ts'
import type { Jobs } from '../load/jobs.ts'
import { MB } from '../measure.ts'
import { memoryBytes } from '../process-stats.ts'
import { FLOOR } from '../report.ts'
import { commandTarget, compiledHere, copiedProgram, quoted, type ServerKind, type ServerTarget } from '../server.ts'
import { median } from '../statistics.ts'
import { suiteOf, type Target, type Workload } from '../suite.ts'
import { kept } from './kept.ts'
import { bullmq } from './peers/bullmq.ts'
import { make } from './peers/make.ts'
import { asRows, besidePeers, type Peer, ROUNDS, type Section } from './section.ts'
import { CONTROL, type ControlRowSizes, QUICK_CONTROL } from './sizes.ts'

/** GET /tasks with 10,000 tasks, all of them in one answer. */
const list: Workload<ServerTarget, ControlRowSizes> = {
  name: 'list',
  measures: ({ listTasks }) => [
    {
      ...{
        key: 'list',
        label: `GET /tasks with ${listTasks.toLocaleString('en')} tasks`,
        unit: '/s',
        better: 'higher',
      },
      goal: { timesFloor: 0.27 },
    },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    const { listTasks: tasks, lists: requests } = sizes
    await using server = await target.start()
    const { url } = server
    await load.run('graph', { url, shape: 'wide', tasks, repeats: 1, warmUps: 0, prefix: freshPrefix() })
    const listed = (await (await fetch(`${url}/tasks`)).json()) as readonly unknown[]
    if (listed.length !== tasks) throw new Error(`${listed.length} of ${tasks} tasks in the list`)
    const { ratePerSecond } = await load.run('get', { url, path: '/tasks', clients: 1, requests, warmUpRequests: 5 })
    return { list: ratePerSecond }
  },
}

/** A target that has a program. */
interface Versioned extends Target {
  readonly versionCommand: readonly string[]
}

/** How long `--version` takes, as a whole process, beside a compiled program that prints one line. */
const version: Workload<Versioned, ControlRowSizes> = {
  name: 'version',
  measures: () => [
    {
      ...{ key: 'version', label: '`--version` (floor: hello)', unit: 'ms', better: 'lower' },
      goal: { timesFloor: 1.5 },
    },
  ],
  async run({ versionCommand }, { sizes }) {
    const times: number[] = []
    for (let i = 0; i < sizes.starts; i++) {
      const start = performance.now()
      const { exitCode } = Bun.spawnSync([...versionCommand], { stdout: 'ignore' })
      times.push(performance.now() - start)
      if (exitCode !== 0) throw new Error(`exit code ${exitCode}`)
    }
    return { version: median(times) }
  },
}

/** Milliseconds after which a started server is idle. */
const IDLE_AFTER_MS = 300

/** Measures the time from spawn to the first answer with an empty data directory, and the idle memory (Pss). */
const start: Workload<ServerTarget, { readonly starts: number }> = {
  name: 'start',
  measures: () => [
    { key: 'start_ready', label: 'ready after start', unit: 'ms', better: 'lower', goal: { timesFloor: 1.4 } },
    { key: 'start_idle_memory', label: 'memory, idle', unit: 'MB', better: 'lower', goal: { timesFloor: 1.5 } },
  ],
  async run(target, { sizes }) {
    const readyMs: number[] = []
    let idleMemory: number | null = null
    for (let i = 0; i < sizes.starts; i++) {
      await using server = await target.start()
      if (server.readyMs === undefined) return { start_ready: null, start_idle_memory: null }
      readyMs.push(server.readyMs)
      if (i < sizes.starts - 1) continue
      await Bun.sleep(IDLE_AFTER_MS)
      idleMemory = memoryBytes(server.pid!) / MB
    }
    return { start_ready: median(readyMs), start_idle_memory: idleMemory }
  },
}

/** Milliseconds; more than it takes. */
const LIMIT_MS = 10_000

/** A graph of one no-op task, from POST until a held GET says success; service and client share one core. */
const one: Workload<ServerTarget, ControlRowSizes> = {
  name: 'one',
  measures: () => [
    {
      ...{ key: 'one_p50', label: 'one no-op task until seen, on one core: half within', unit: 'ms', better: 'lower' },
      goal: { timesFloor: 1.1 },
    },
    { key: 'one_p99', label: '… 99 % within', unit: 'ms', better: 'lower', goal: { timesFloor: 2 } },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    await using server = await target.start()
    const { url, pid } = server
    const { oneTasks: tasks, oneWarmUps: warmUpTasks } = sizes
    const job = { url, clients: 1, tasks, warmUpTasks, limitMs: LIMIT_MS, task: { type: 'noop' } }
    const { p50Ms, p99Ms } = await onOneCore([pid!, load.pid], () => load.run('one', { ...job, prefix: freshPrefix() }))
    return { one_p50: p50Ms, one_p99: p99Ms }
  },
}

/** No-op tasks in graphs of several shapes: from the first byte of POST to the end of the last task. */
const graphs: Workload<ServerTarget, ControlRowSizes> = {
  name: 'graphs',
  measures: ({ graphs }) =>
    graphs.map(({ key, label, goal }) => ({ key, label, unit: 'ms', better: 'lower', goal }) as const),
  async run(target, { sizes, load, freshPrefix }) {
    const figures: Record<string, number> = {}
    for (const { key, shape, tasks, repeats, warmUps } of sizes.graphs) {
      await using server = await target.start()
      const job: Jobs['graph']['input'] = { url: server.url, shape, tasks, repeats, warmUps, prefix: freshPrefix() }
      figures[key] = median((await load.run('graph', job)).elapsedMs)
    }
    return figures
  },
}

type ControlTarget = ServerTarget & Versioned

const accept = asRows(submit, {
  submit_1_rate: { label: 'ten-task graphs accepted, 1 client', goal: { timesFloor: 0.96 } },
  submit_8_rate: { label: 'ten-task graphs accepted, 8 clients', goal: { timesFloor: 0.88 } },
  submit_32_rate: { label: 'ten-task graphs accepted, 32 clients', goal: { timesFloor: 0.8 } },
  submit_32_cpu: { label: '… CPU of the service for one', goal: { timesFloor: 1.44 } },
})

const workloads = [
  ...[accept, graphs, one, start, kept, list].map((workload) =>
    besidePeers<ServerTarget, ControlRowSizes>({ ...workload, name: workload === accept ? 'accept' : workload.name }),
  ),
  besidePeers<Versioned, ControlRowSizes>(version),
]

export const control: Section = {
  title: 'Control: graphs of no-op tasks',
  suite: suiteOf<ControlTarget | Peer<ControlRowSizes>, ControlRowSizes>({
    ...{ name: 'control', full: CONTROL, quick: QUICK_CONTROL, rounds: ROUNDS, roundsMs: 170_000 },
    ...{ prepare, workloads, isClosed: true },
  }),
  peers: { make: 'GNU make', bullmq: 'redis-server, and bullmq and ioredis from npm in the directory of --peers' },
}

async function prepare({ peers }: BenchConfig, lifetime: Lifetime): Promise<(ControlTarget | Peer<ControlRowSizes>)[]> {
  const kind: ServerKind = { healthPath: '/health', fill: {} }
  const ours = await copiedProgram('taskmill-control', lifetime)
  const floor = await compiledHere(join(import.meta.dir, '../control/floor.ts'), 'control-floor', lifetime)
  const hello = await compiledHere(join(import.meta.dir, 'hello.ts'), 'hello', lifetime)
  const command = `${quoted(ours)} --addr 127.0.0.1:{port} --data-dir {dir} --persist-interval 24h`
  const floorCommand = `${quoted(floor)} --port {port} --journal {dir}/journal`
  return [
    { ...commandTarget('taskmill', command, kind, lifetime), versionCommand: [ours, '--version'] },
    { ...commandTarget(FLOOR, floorCommand, kind, lifetime), versionCommand: [hello] },
    ...make(lifetime),
    ...(await bullmq(peers, lifetime)),
  ]
}

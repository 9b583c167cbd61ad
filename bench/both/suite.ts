/** Control and the runtime service together: the overhead of control for a runtime task. */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { compiledC } from '../compiled-c.ts'
import type { BenchConfig } from '../config.ts'
import type { Lifetime } from '../lifetime.ts'
import { commandTarget, copiedProgram, quoted, type ServerKind } from '../server.ts'
import { suiteOf, type Target, type Workload } from '../suite.ts'

interface Sizes {
  /** Tasks that write at the same time, their lines a second, and for how many seconds. */
  readonly writers: number
  readonly linesPerSecond: number
  readonly seconds: number
  readonly tasks: number
  readonly warmUpTasks: number
  /** Milliseconds after which no further task begins. */
  readonly limitMs: number
}

interface BothTarget extends Target {
  /** Writes lines at a rate. Undefined without a compiler. */
  readonly writer: string | undefined
  /** `atOnce`: tasks that run at the same time. */
  start(atOnce?: number): Promise<Servers & AsyncDisposable>
}

interface Servers {
  readonly controlUrl: string
  readonly runtimeUrl: string
  readonly controlPid: number
  readonly runtimePid: number
}

const RUNTIME: ServerKind = { healthPath: '/healthz', fill: {} }
const CONTROL: ServerKind = { healthPath: '/health', fill: {} }

/** Milliseconds that control may add, half of the time. */
const GOAL_MS = 2

const through: Workload<BothTarget, Sizes> = {
  name: 'through',
  measures: () => [
    { key: 'direct_p50', label: '/bin/true, 1 client, asked of the runtime service: half within', unit: 'ms' },
    { key: 'through_p50', label: '… of control, as a graph of one task: half within', unit: 'ms' },
    {
      ...{ key: 'added_p50', label: '… which is more by', unit: 'ms', better: 'lower' },
      goal: { figure: GOAL_MS },
    },
    { key: 'direct_p99', label: '… asked of the runtime service: 99 % within', unit: 'ms' },
    { key: 'through_p99', label: '… of control: 99 % within', unit: 'ms' },
  ],
  async run(target, { sizes, load, freshPrefix }) {
    await using servers = await target.start()
    const { controlUrl, runtimeUrl } = servers
    const { direct, through } = await load.run('through', { controlUrl, runtimeUrl, ...sizes, prefix: freshPrefix() })
    return {
      ...{ direct_p50: direct.p50Ms, through_p50: through.p50Ms, added_p50: through.p50Ms - direct.p50Ms },
      ...{ direct_p99: direct.p99Ms, through_p99: through.p99Ms },
    }
  },
}

/** What each service may use of one core while they pass on the output of all tasks. */
const GOAL_PERCENT = 50

const output: Workload<BothTarget, Sizes> = {
  name: 'output',
  measures: ({ writers, linesPerSecond }) => {
    const label = `${writers} tasks write ${linesPerSecond.toLocaleString('en')} lines a second each, all followed`
    return [
      {
        key: 'output_runtime',
        label: `${label}: the runtime service uses`,
        unit: '% of a core',
        better: 'lower',
        goal: { figure: GOAL_PERCENT },
      },
      {
        key: 'output_control',
        label: '… control uses',
        unit: '% of a core',
        better: 'lower',
        goal: { figure: GOAL_PERCENT },
      },
    ]
  },
  async run(target, { sizes, load, freshPrefix }) {
    const { writers: tasks, linesPerSecond, seconds } = sizes
    const { writer: program } = target
    if (program === undefined) return {}
    await using servers = await target.start(tasks)
    const { controlUrl, controlPid, runtimePid } = servers
    const rate = { tasks, program, linesPerSecond, seconds, prefix: freshPrefix() }
    const { coreShares } = await load.run('logs', { controlUrl, pids: [runtimePid, controlPid], ...rate })
    return { output_runtime: 100 * coreShares[0]!, output_control: 100 * coreShares[1]! }
  },
}

export const both = suiteOf({
  name: 'both',
  full: { tasks: 300, warmUpTasks: 100, limitMs: 3_000, writers: 100, linesPerSecond: 1_000, seconds: 5 },
  quick: { tasks: 10, warmUpTasks: 5, limitMs: 3_000, writers: 2, linesPerSecond: 100, seconds: 1 },
  roundsMs: 60_000,
  prepare,
  workloads: [through, output],
  isClosed: true,
})

async function prepare(_config: BenchConfig, lifetime: Lifetime): Promise<BothTarget[]> {
  const control = quoted(await copiedProgram('taskmill-control', lifetime))
  const runtime = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const runtimeCommand = `${runtime} serve --listen-addr 127.0.0.1:{port} --data-dir {dir}`
  const controlCommand = `${control} --addr 127.0.0.1:{port} --data-dir {dir} --runtime-url {runtime}`
  const writer = await compiledC(join(import.meta.dir, 'lines.c'), [], lifetime)
  return [
    {
      name: 'control+runtime',
      writer,
      description: `${runtimeCommand}; ${controlCommand}`.replaceAll(`${lifetime.dir}/`, ''),
      async start(atOnce) {
        const [controlMore, runtimeMore] =
          atOnce === undefined ? ['', ''] : [` --max-concurrency ${atOnce}`, ` --max-running-tasks ${atOnce}`]
        const dir = mkdtempSync(join(lifetime.dir, 'both-'))
        const dataDir = (name: string) => {
          mkdirSync(join(dir, name))
          return join(dir, name)
        }
        const below = await commandTarget('runtime', runtimeCommand + runtimeMore, RUNTIME, lifetime).start({
          dataDir: dataDir('runtime'),
        })
        const fill = { runtime: below.url }
        const above = await commandTarget('control', controlCommand + controlMore, CONTROL, lifetime).start({
          ...{ fill, dataDir: dataDir('control') },
        })
        return {
          controlUrl: above.url,
          runtimeUrl: below.url,
          controlPid: above.pid!,
          runtimePid: below.pid!,
          async [Symbol.asyncDispose]() {
            await above[Symbol.asyncDispose]()
            await below[Symbol.asyncDispose]()
          },
        }
      },
    },
  ]
}

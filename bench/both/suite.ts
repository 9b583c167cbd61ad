/** Control and the runtime service together: the overhead of control for a runtime task. */
import { mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchConfig } from '../config.ts'
import type { Lifetime } from '../lifetime.ts'
import { commandTarget, copiedProgram, quoted, type ServerKind } from '../server.ts'
import { suiteOf, type Target, type Workload } from '../suite.ts'

interface Sizes {
  readonly tasks: number
  readonly warmUpTasks: number
  /** Milliseconds after which no further task begins. */
  readonly limitMs: number
}

interface BothTarget extends Target {
  start(): Promise<{ readonly controlUrl: string; readonly runtimeUrl: string } & AsyncDisposable>
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

export const both = suiteOf({
  name: 'both',
  full: { tasks: 300, warmUpTasks: 100, limitMs: 3_000 },
  quick: { tasks: 10, warmUpTasks: 5, limitMs: 3_000 },
  roundsMs: 60_000,
  prepare,
  workloads: [through],
  isClosed: true,
})

async function prepare(_config: BenchConfig, lifetime: Lifetime): Promise<BothTarget[]> {
  const control = quoted(await copiedProgram('taskmill-control', lifetime))
  const runtime = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const runtimeCommand = `${runtime} serve --listen-addr 127.0.0.1:{port} --data-dir {dir}`
  const controlCommand = `${control} --addr 127.0.0.1:{port} --data-dir {dir} --runtime-url {runtime}`
  return [
    {
      name: 'control+runtime',
      description: `${runtimeCommand}; ${controlCommand}`.replaceAll(`${lifetime.dir}/`, ''),
      async start() {
        const dir = mkdtempSync(join(lifetime.dir, 'both-'))
        const dataDir = (name: string) => {
          mkdirSync(join(dir, name))
          return join(dir, name)
        }
        const below = await commandTarget('runtime', runtimeCommand, RUNTIME, lifetime).start({
          dataDir: dataDir('runtime'),
        })
        const fill = { runtime: below.url }
        const above = await commandTarget('control', controlCommand, CONTROL, lifetime).start({
          ...{ fill, dataDir: dataDir('control') },
        })
        return {
          controlUrl: above.url,
          runtimeUrl: below.url,
          async [Symbol.asyncDispose]() {
            await above[Symbol.asyncDispose]()
            await below[Symbol.asyncDispose]()
          },
        }
      },
    },
  ]
}

/** What the report says nothing of: how long control keeps a reader waiting, beside its floor. */
import { join } from 'node:path'
import type { BenchConfig } from '../config.ts'
import type { Lifetime } from '../lifetime.ts'
import { FLOOR } from '../report.ts'
import {
  commandTarget,
  compiledHere,
  copiedProgram,
  givenTargets,
  quoted,
  type ServerKind,
  type ServerTarget,
} from '../server.ts'
import { suiteOf } from '../suite.ts'
import { stall } from './stall.ts'

/** `{persist}`: between two writes of the state file. */
const KIND: ServerKind = { healthPath: '/health', fill: { persist: '24h' } }

export const control = suiteOf({
  name: 'control',
  full: { tasks: 100_000, persistMs: 1_500 },
  quick: { tasks: 5_000, persistMs: 300 },
  roundsMs: 60_000,
  prepare,
  workloads: [stall],
})

async function prepare(config: BenchConfig, lifetime: Lifetime): Promise<ServerTarget[]> {
  const ours = quoted(await copiedProgram('taskmill-control', lifetime))
  const floor = quoted(await compiledHere(join(import.meta.dir, 'floor.ts'), 'control-floor', lifetime))
  const command = `${ours} --addr 127.0.0.1:{port} --data-dir {dir} --persist-interval {persist}`
  return [
    commandTarget('control', command, KIND, lifetime),
    commandTarget(FLOOR, `${floor} --port {port}`, KIND, lifetime),
    ...givenTargets(config, KIND, lifetime),
  ]
}

/** Control compared with its floor, with and without a journal. */
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
import { start } from '../start.ts'
import { suiteOf } from '../suite.ts'
import { health } from './health.ts'
import { large } from './large.ts'
import { restart } from './restart.ts'
import { FULL, QUICK } from './sizes.ts'
import { small } from './small.ts'
import { stall } from './stall.ts'
import { submit } from './submit.ts'

/** `{persist}`: between two writes of the state file, so long that there is none unless a workload wants it. */
const KIND: ServerKind = { healthPath: '/health', fill: { persist: '24h' } }

export const control = suiteOf({
  name: 'control',
  full: FULL,
  quick: QUICK,
  roundsMs: 200_000,
  prepare,
  workloads: [submit, health, small, large, stall, start, restart],
})

async function prepare(config: BenchConfig, lifetime: Lifetime): Promise<ServerTarget[]> {
  const ours = quoted(await copiedProgram('taskmill-control', lifetime))
  const floor = quoted(await compiledHere(join(import.meta.dir, 'floor.ts'), 'control-floor', lifetime))
  const command = `${ours} --addr 127.0.0.1:{port} --data-dir {dir} --persist-interval {persist}`
  return [
    commandTarget('control', command, KIND, lifetime),
    commandTarget(FLOOR, `${floor} --port {port}`, KIND, lifetime),
    commandTarget(`${FLOOR}+journal`, `${floor} --port {port} --journal {dir}/journal`, KIND, lifetime),
    ...givenTargets(config, KIND, lifetime),
  ]
}

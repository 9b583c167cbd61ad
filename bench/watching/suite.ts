/** Compares control with a floor: the cost of clients that watch, and the time from a change to a client. */
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
import { beside } from './beside.ts'
import { clients } from './clients.ts'
import { drawing } from './drawing.ts'
import { latency } from './latency.ts'
import { lists } from './lists.ts'
import { FULL, QUICK } from './sizes.ts'

const KIND: ServerKind = { healthPath: '/health', fill: {} }

export const watching = suiteOf({
  name: 'watching',
  full: FULL,
  quick: QUICK,
  roundsMs: 150_000,
  prepare,
  workloads: [latency, clients, beside, lists, drawing],
})

async function prepare(config: BenchConfig, lifetime: Lifetime): Promise<ServerTarget[]> {
  const ours = quoted(await copiedProgram('taskmill-control', lifetime))
  const floor = quoted(await compiledHere(join(import.meta.dir, 'floor.ts'), 'watching-floor', lifetime))
  // No state file is written during this suite. The suite `control` measures its effect on requests.
  const command = `${ours} --addr 127.0.0.1:{port} --data-dir {dir} --persist-interval 24h`
  return [
    commandTarget('control', command, KIND, lifetime),
    commandTarget(FLOOR, `${floor} --port {port} --journal {dir}/journal`, KIND, lifetime),
    ...givenTargets(config, KIND, lifetime),
  ]
}

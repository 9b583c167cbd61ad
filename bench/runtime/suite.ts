/** The runtime service compared with its floor and with the limit of the machine. */
import { join } from 'node:path'
import { compiledC } from '../compiled-c.ts'
import type { BenchConfig } from '../config.ts'
import type { Lifetime } from '../lifetime.ts'
import { FLOOR } from '../report.ts'
import { commandTarget, compiledHere, copiedProgram, givenTargets, quoted, type ServerKind } from '../server.ts'
import { start } from '../start.ts'
import { suiteOf } from '../suite.ts'
import { spawnLoops } from './loops.ts'
import { queue } from './queue.ts'
import { rate } from './rate.ts'
import { running } from './running.ts'
import { single } from './single.ts'
import { FULL, QUICK } from './sizes.ts'
import { RETENTION, steady } from './steady.ts'
import { HELD_TENANT, onServers, type RuntimeTarget, type RuntimeWorkload } from './targets.ts'

/** The same with files and a parent for each task. */
const FULL_FLOOR = 'floor+task'

const KIND: ServerKind = { healthPath: '/healthz', fill: { slots: '4', retention: '604800' } }

export const runtime = suiteOf({
  name: 'runtime',
  full: FULL,
  quick: QUICK,
  roundsMs: 90_000,
  prepare,
  workloads: [single, rate, ...[running, queue, onServers(steady), onServers(start)].map(withoutFullFloor)],
})

/** It runs /bin/true and nothing else. */
function withoutFullFloor(workload: RuntimeWorkload): RuntimeWorkload {
  return {
    ...workload,
    run: async (target, tools) => (target.name === FULL_FLOOR ? {} : await workload.run(target, tools)),
  }
}

/** The floor of what a task must have; only where there is a compiler, which nothing else needs. */
async function fullFloor(floor: string, lifetime: Lifetime): Promise<RuntimeTarget[]> {
  const parents = await compiledC(join(import.meta.dir, 'parents.c'), ['-static'], lifetime)
  if (parents === undefined) return []
  const command = `${floor} --port {port} --slots {slots} --journal {dir}/journal --tasks {dir} --parents ${quoted(parents)}`
  return [commandTarget(FULL_FLOOR, command, KIND, lifetime)]
}

async function prepare(config: BenchConfig, lifetime: Lifetime): Promise<RuntimeTarget[]> {
  const ours = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const floor = quoted(await compiledHere(join(import.meta.dir, 'floor.ts'), 'runtime-floor', lifetime))
  const serve = `${ours} serve --listen-addr 127.0.0.1:{port} --data-dir {dir} --max-running-tasks {slots}`
  const command = `${serve} --result-retention-secs ${RETENTION} --max-queued-tasks 20000 --tenant-quota ${HELD_TENANT}=slots:1`
  return [
    commandTarget('runtime', command, KIND, lifetime),
    commandTarget(FLOOR, `${floor} --port {port} --slots {slots} --journal {dir}/journal`, KIND, lifetime),
    ...(await fullFloor(floor, lifetime)),
    ...givenTargets(config, KIND, lifetime),
    ...(await spawnLoops(lifetime)),
  ]
}

/** What the report says nothing of: running tasks, a long queue, and hours of creating and removing. */
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
import { HELD_TENANT, queue } from './queue.ts'
import { running } from './running.ts'
import { FULL, QUICK } from './sizes.ts'
import { RETENTION, steady } from './steady.ts'

const KIND: ServerKind = { healthPath: '/healthz', fill: { slots: '4', retention: '604800' } }

export const runtime = suiteOf({
  name: 'runtime',
  full: FULL,
  quick: QUICK,
  roundsMs: 90_000,
  prepare,
  workloads: [running, queue, steady],
})

async function prepare(config: BenchConfig, lifetime: Lifetime): Promise<ServerTarget[]> {
  const ours = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const floor = quoted(await compiledHere(join(import.meta.dir, 'floor.ts'), 'runtime-floor', lifetime))
  const serve = `${ours} serve --listen-addr 127.0.0.1:{port} --data-dir {dir} --max-running-tasks {slots}`
  const command = `${serve} --result-retention-secs ${RETENTION} --max-queued-tasks 20000 --tenant-quota ${HELD_TENANT}=slots:1`
  return [
    commandTarget('runtime', command, KIND, lifetime),
    commandTarget(FLOOR, `${floor} --port {port} --slots {slots} --journal {dir}/journal`, KIND, lifetime),
    ...givenTargets(config, KIND, lifetime),
  ]
}

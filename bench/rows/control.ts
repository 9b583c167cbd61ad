/** The rows of control: its floor is the one with a journal. */
import { join } from 'node:path'
import type { BenchConfig } from '../config.ts'
import { submit } from '../control/submit.ts'
import type { Lifetime } from '../lifetime.ts'
import { FLOOR } from '../report.ts'
import { commandTarget, compiledHere, copiedProgram, quoted, type ServerKind, type ServerTarget } from '../server.ts'
import { suiteOf } from '../suite.ts'
import { graphs } from './graphs.ts'
import { kept } from './kept.ts'
import { list } from './list.ts'
import { one } from './one.ts'
import { bullmq } from './peers/bullmq.ts'
import { make } from './peers/make.ts'
import { asRows, besidePeers, type Peer, ROUNDS, type Section } from './section.ts'
import { CONTROL, type ControlRowSizes, QUICK_CONTROL } from './sizes.ts'
import { start } from './start.ts'
import { type Versioned, version } from './version.ts'

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

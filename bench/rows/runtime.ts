/** The rows of the runtime service, without a sandbox and in one. The floor runs the same program without either. */
import { join } from 'node:path'
import type { Lifetime } from '../lifetime.ts'
import { FLOOR } from '../report.ts'
import { commandLoop } from '../runtime/loops.ts'
import { bwrapCommand, compiledFloor, SANDBOX, sandboxWorkspace } from '../sandbox/targets.ts'
import { commandTarget, compiledHere, copiedProgram, quoted, type ServerTarget } from '../server.ts'
import { suiteOf } from '../suite.ts'
import { taskSpooler } from './peers/task-spooler.ts'
import { type ProcessTarget, processes } from './processes.ts'
import { ROUNDS, type Section } from './section.ts'
import { PROCESSES, QUICK_PROCESSES } from './sizes.ts'

const KIND = { healthPath: '/healthz', fill: { slots: '4' } }

const sizes = { full: PROCESSES, quick: QUICK_PROCESSES, rounds: ROUNDS }

export const runtime: Section = {
  title: 'Runtime service: `/bin/true`',
  suite: suiteOf({
    ...{ name: 'runtime', ...sizes, roundsMs: 70_000, isClosed: true },
    prepare: async (_config, lifetime) => [
      { name: 'taskmill', description: 'taskmill-runtime serve', server: await ours(lifetime) },
      { name: FLOOR, description: 'runtime/floor.ts', server: await floor(lifetime) },
      ...(await taskSpooler(lifetime)),
    ],
    workloads: [{ ...processes('`/bin/true`', { p50: 1.5, rate: 0.75, cpu: 1.36 }), name: 'plain' }],
  }),
  peers: { tsp: "Debian's task-spooler" },
}

export const sandbox: Section = {
  title: 'Runtime service: `/bin/true` in a sandbox',
  suite: suiteOf({
    ...{ name: 'sandbox', ...sizes, roundsMs: 85_000, isClosed: true },
    prepare: async (_config, lifetime) => [
      { name: 'taskmill', description: 'taskmill-runtime serve', server: await ours(lifetime), sandbox: SANDBOX },
      ...(await sandboxFloor(lifetime)),
      ...(await bwrap(lifetime)),
    ],
    workloads: [{ ...processes('`/bin/true` in a sandbox', { p50: 1.24, rate: 0.81, cpu: 1.22 }), name: 'sandboxed' }],
  }),
  peers: { bwrap: 'bubblewrap' },
}

async function ours(lifetime: Lifetime): Promise<ServerTarget> {
  const program = quoted(await copiedProgram('taskmill-runtime', lifetime))
  const serve = `${program} serve --listen-addr 127.0.0.1:{port} --data-dir {dir} --max-running-tasks {slots}`
  return commandTarget('taskmill', serve, KIND, lifetime)
}

async function floor(lifetime: Lifetime): Promise<ServerTarget> {
  const program = quoted(await compiledHere(join(import.meta.dir, '../runtime/floor.ts'), 'runtime-floor', lifetime))
  return commandTarget(FLOOR, `${program} --port {port} --slots {slots} --journal {dir}/journal`, KIND, lifetime)
}

/** The floor of the service, which starts the floor of a sandbox. */
async function sandboxFloor(lifetime: Lifetime): Promise<ProcessTarget[]> {
  const program = await compiledFloor(lifetime)
  if (program === undefined) return []
  const command = [program, '/bin/true'] as const
  return [{ name: FLOOR, description: 'runtime/floor.ts, sandbox/floor.c', server: await floor(lifetime), command }]
}

async function bwrap(lifetime: Lifetime): Promise<ProcessTarget[]> {
  const command = bwrapCommand(sandboxWorkspace(lifetime))
  const loop = command === undefined ? undefined : await commandLoop('bwrap', command, lifetime)
  return loop === undefined ? [] : [{ name: 'bwrap', description: command!.slice(1).join(' '), loop }]
}

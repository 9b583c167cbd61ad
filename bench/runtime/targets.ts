/** The targets of the suite: servers of the runtime API, and loops that only start processes. */
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { SpawnLoop } from './loops.ts'
import type { RuntimeSizes } from './sizes.ts'

export type RuntimeTarget = ServerTarget | SpawnLoop

export type RuntimeWorkload = Workload<RuntimeTarget, RuntimeSizes>

export const isLoop = (target: RuntimeTarget): target is SpawnLoop => !('start' in target)

/** A workload for servers, of which a loop knows nothing. */
export const onServers = (workload: Workload<ServerTarget, RuntimeSizes>): RuntimeWorkload => ({
  ...workload,
  run: async (target, tools) => (isLoop(target) ? {} : await workload.run(target, tools)),
})

/** A tenant with a quota of one slot: while one of its tasks sleeps, its others wait. Tasks without a tenant run. */
export const HELD_TENANT = 'held'

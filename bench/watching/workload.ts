/** A workload for control, its floor and other servers that send events. */
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { WatchingSizes } from './sizes.ts'

export type WatchingWorkload = Workload<ServerTarget, WatchingSizes>

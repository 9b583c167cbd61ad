/** A workload for control, its floor and other servers of its API. */
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { ControlSizes } from './sizes.ts'

export type ControlWorkload = Workload<ServerTarget, ControlSizes>

/** A workload that control, its floor and their like are put to. */
import type { ServerTarget } from '../server.ts'
import type { Workload } from '../suite.ts'
import type { ControlSizes } from './sizes.ts'

export type ControlWorkload = Workload<ServerTarget, ControlSizes>

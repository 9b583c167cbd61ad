/** The sandbox: our launcher and our service compared with bwrap and with the minimal cost of a sandbox. */
import { suiteOf } from '../suite.ts'
import { launch } from './launch.ts'
import { network } from './network.ts'
import { rate, single } from './service.ts'
import { FULL, QUICK } from './sizes.ts'
import { sandboxTargets } from './targets.ts'

export const sandbox = suiteOf({
  name: 'sandbox',
  full: FULL,
  quick: QUICK,
  roundsMs: 90_000,
  prepare: (_config, lifetime) => sandboxTargets(lifetime),
  isClosed: true,
  workloads: [launch, single, rate, network],
})

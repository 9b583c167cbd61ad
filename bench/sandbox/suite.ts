/** The sandbox: our launcher and our service beside bwrap, and beside the least that a sandbox costs. */
import { suiteOf } from '../suite.ts'
import { launch } from './launch.ts'
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
  workloads: [launch, single, rate],
})

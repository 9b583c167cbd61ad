/** A part of the report: a suite whose measures are its rows, and the installed peers to measure beside it. */
import { messageOf } from '../../shared/contract/errors.ts'
import type { Figures, Measure } from '../measure.ts'
import type { Suite, Target, Tools, Workload } from '../suite.ts'

export interface Section {
  readonly title: string
  readonly suite: Suite
  /** Servers of the suite that do not come with this project, and what they need. */
  readonly peers: Readonly<Record<string, string>>
}

/** Rounds of a section in one run. A median of fewer than three rounds is a matter of chance. */
export const ROUNDS = 3

/** Another program that does the same work in its own way, with a function for each workload that it knows. */
export interface Peer<S> extends Target {
  readonly work: Readonly<Record<string, (tools: Tools<S>) => Promise<Figures>>>
}

const isPeer = <S>(target: Target): target is Peer<S> => 'work' in target

/**
 * A workload that also measures peers. Each peer does it in its own way, once in a run: the rounds are for taskmill and its
 * floor. A peer that fails has no figures, and the others keep theirs.
 */
export function besidePeers<T extends Target, S>(workload: Workload<T, S>): Workload<T | Peer<S>, S> {
  const known = new WeakMap<Target, Promise<Figures>>()
  const measured = async (peer: Peer<S>, tools: Tools<S>): Promise<Figures> => {
    try {
      return (await peer.work[workload.name]?.(tools)) ?? {}
    } catch (error) {
      console.error(`${peer.name} could not be measured: ${messageOf(error)}`)
      return {}
    }
  }
  return {
    ...workload,
    run: async (target, tools) => {
      if (!isPeer<S>(target)) return await workload.run(target, tools)
      const figures = known.get(target) ?? measured(target, tools)
      known.set(target, figures)
      return await figures
    },
  }
}

/** The workload with the measures whose keys `rows` has, changed as `rows` says. */
export const asRows = <T extends Target, S>(
  workload: Workload<T, S>,
  rows: Readonly<Record<string, Partial<Measure>>>,
): Workload<T, S> => ({
  ...workload,
  measures: (sizes) =>
    workload.measures(sizes).flatMap((measure) => (measure.key in rows ? [{ ...measure, ...rows[measure.key] }] : [])),
})

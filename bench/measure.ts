/** The measures of a workload, and the figures of one round. */

export type Unit = '/s' | 'ms' | 'µs' | 'MB' | 'MB/s' | 'KB' | 'bytes' | 'tokens' | '% of a core' | 'ratio'

/** What ours should reach, from the side that `better` says: so many times the floor's figure, or a figure of its own. */
export type Goal = { readonly timesFloor: number } | { readonly figure: number }

export interface Measure {
  /** Unique among all workloads of a suite. */
  readonly key: string
  /** What is measured, in words. */
  readonly label: string
  readonly unit: Unit
  /** Absent where neither is better; the figure has no ratio then. */
  readonly better?: 'higher' | 'lower'
  readonly goal?: Goal
}

/** Figures of one round by the key of their measure. Null or absent: the target cannot be measured so. */
export type Figures = Readonly<Record<string, number | null>>

/** Bytes. */
export const KB = 1e3
export const MB = 1e6

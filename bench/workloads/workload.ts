/** A piece of work that every server is put to, and the figures that come out of it. */
import type { Sizes } from '../config.ts'
import type { Generator } from '../generator.ts'
import type { Target } from '../servers.ts'

export type Unit = '/s' | 'ms' | 'µs' | 'MB' | 'bytes' | '% of a core'

export interface Measure {
  /** Unique among all workloads. */
  readonly key: string
  /** What is measured, in words. */
  readonly label: string
  readonly unit: Unit
  /** Absent where the figure judges nobody; it has no ratio then. */
  readonly better?: 'higher' | 'lower'
}

export interface Tools {
  readonly sizes: Sizes
  readonly load: Generator
  /** A second process, for what goes on beside the load. */
  readonly prober: Generator
  /** A start for task ids that was never used before. */
  readonly freshPrefix: () => string
}

/** Null: this server cannot be measured so. */
export type Figures = Readonly<Record<string, number | null>>

export interface Workload {
  /** For `--only`. */
  readonly name: string
  readonly measures: (sizes: Sizes) => readonly Measure[]
  /** One round on one server: a figure for each of the measures. */
  readonly run: (target: Target, tools: Tools) => Promise<Figures>
}

export const MB = 1e6

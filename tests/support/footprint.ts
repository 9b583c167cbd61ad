/** What a process holds, as Linux knows it. */
import { readdirSync, readFileSync } from 'node:fs'

export interface Footprint {
  readonly descriptors: number
  /** Resident memory. */
  readonly bytes: number
}

export function footprintOf(pid: number): Footprint {
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]
  return { descriptors: readdirSync(`/proc/${pid}/fd`).length, bytes: Number(resident) * 1024 }
}

/** The least-squares slope of `values` over `times`: change a unit of time. */
export function slopeOf(times: readonly number[], values: readonly number[]): number {
  const mean = (numbers: readonly number[]) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length
  const [meanTime, meanValue] = [mean(times), mean(values)]
  const [covariance, variance] = times.reduce(
    ([sumOfBoth, sumOfTimes], time, i) => [
      sumOfBoth + (time - meanTime) * (values[i]! - meanValue),
      sumOfTimes + (time - meanTime) ** 2,
    ],
    [0, 0] as [number, number],
  )
  return variance === 0 ? 0 : covariance / variance
}

/** The value that `share` of `values` do not exceed. */
export const quantileOf = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

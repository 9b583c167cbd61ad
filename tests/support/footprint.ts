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
function slopeOf(times: readonly number[], values: readonly number[]): number {
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

/** The minutes after its start in which a service still grows: code is compiled, caches fill. */
const WARM_UP_MINUTES = 20

/** Memory varies by some megabytes from look to look: a shorter time has no slope. */
const MIN_STEADY_MINUTES = 20

/** The change an hour after the warm-up. Undefined if `values` end too early to tell. `minutes` are those since the start. */
export function steadySlope(minutes: readonly number[], values: readonly number[]): number | undefined {
  const first = minutes.findIndex((minute) => minute >= WARM_UP_MINUTES)
  if (first < 0 || minutes.at(-1)! - minutes[first]! < MIN_STEADY_MINUTES * 0.95) return undefined
  return slopeOf(minutes.slice(first), values.slice(first)) * 60
}

/** The value that `share` of `values` do not exceed. */
export const quantileOf = (values: readonly number[], share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN

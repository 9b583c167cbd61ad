/** A disk that fails now and then under a service that is killed. */
import type { Random } from './random.ts'
import { until } from './until.ts'

/** What a run does to the disk while its clients are at work, and before each start. */
export interface DisturbedDisk {
  disturb(random: Random): void
  restore(): void
  /** For the environment of the service. */
  readonly env?: Readonly<Record<string, string>>
}

/** Disturbs the disk until a request was refused: in all rounds so far it may have failed in moments without one. */
export async function refusal(disk: DisturbedDisk, refused: readonly unknown[], random: Random): Promise<void> {
  await until(
    () => {
      if (refused.length === 0) disk.disturb(random)
      return refused.length
    },
    (count) => count > 0,
  )
}

/** Changes of the database on their way to the disk: requests, which can be refused, and facts, which cannot. */
import { unavailable } from '../files/disk-fault.ts'

export interface PendingChange {
  /** Runs the statements of the change. Called again after a rollback, so it must do nothing else. */
  readonly apply: () => void
  /** Undoes a committed change. Only requests have it. */
  readonly undo?: (() => void) | undefined
  /** Called when the effect of `undo` is durable. Must not throw. */
  readonly undone?: (() => void) | undefined
  /** Work to do during the sync: called after the commit, before the promise resolves. Must not throw. */
  readonly meanwhile?: (() => void) | undefined
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
  /** Whether the change may use the disk reserve. */
  readonly usesReserve?: boolean | undefined
  /** Whether the disk refused the change, which has to be written again. */
  hasFailed?: true
}

export type FactHooks = Pick<PendingChange, 'meanwhile' | 'usesReserve'>
export type RequestHooks = Pick<PendingChange, 'undone' | 'usesReserve'>

export const isFact = ({ undo }: PendingChange): boolean => undo === undefined

export const factsOf = (changes: readonly PendingChange[]): PendingChange[] => changes.filter(isFact)

/** Answers the requests among `changes` with 503. */
export function refuse(changes: readonly PendingChange[], error: unknown): void {
  for (const { undo, reject } of changes) {
    if (undo !== undefined) reject(unavailable(error))
  }
}

/** Has ids of ended tasks free, so that another replica can accept a graph with them. */
import { ServiceError } from '../../shared/contract/errors.ts'
import type { OperationParts } from './parts.ts'

/**
 * Resolves once that is kept. From then on, callers find these tasks only within their graphs. Throws 409 if one of them
 * has not ended, and then nothing has changed.
 */
export async function giveUpIds({ store, keeper }: OperationParts, taskIds: readonly string[]): Promise<void> {
  for (const id of taskIds) {
    const why = store.whyTaken(id)
    if (why !== undefined) throw new ServiceError(409, why)
  }
  await keeper.giveUpIds?.(taskIds.flatMap((id) => store.get(id) ?? []))
}

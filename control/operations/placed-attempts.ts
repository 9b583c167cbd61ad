/** Counts attempts by runtime service: those of this replica, and with a database those of all others. */

import { ServiceError } from '../../shared/contract/errors.ts'
import { PlacedAttempts } from '../../shared/contract/replicas.ts'
import { DEFAULT_RUNTIME } from '../../shared/contract/runtime-names.ts'
import { isYieldDue, runCooperatively, type Steps } from '../../shared/process/steps.ts'
import { checkOf } from '../json/schema-check.ts'
import { noOwner } from '../log/no-owner.ts'
import type { TaskStore } from '../task/task-store.ts'
import { askEach, replicasToJoin } from './joined-pages.ts'
import type { OperationParts } from './parts.ts'

/** Attempts of other replicas by runtime service, and the replicas that did not tell. */
export interface AttemptsElsewhere {
  readonly counts: ReadonlyMap<string, number>
  readonly missing: readonly number[]
}

/** Attempts that have or may have a place, including those that wait for a slot after a restart. */
export async function attemptsHere({ runtimePool, store }: OperationParts): Promise<ReadonlyMap<string, number>> {
  const counts = await runCooperatively(handlesIn(store))
  for (const [name, count] of counts) counts.set(name, Math.max(count, runtimePool.attemptCount(name)))
  return counts
}

/** Throws 503 while the database is away. */
export async function attemptsElsewhere({ keeper }: OperationParts): Promise<AttemptsElsewhere> {
  const { others, missing } = await replicasToJoin(keeper)
  const { answers, failed } = await askEach(others, async ({ id, address }) => {
    const request = { method: 'GET', path: '/replicas/attempts', headers: new Headers() }
    const answer = await keeper.others.ask({ id, address }, request)
    const body: unknown = await answer.json().catch(() => undefined)
    if (answer.ok && checkOf(PlacedAttempts).accepts(body)) return (body as PlacedAttempts).attempts
    throw new ServiceError(503, `replica ${id} answers ${answer.status} instead of its attempts`) // an earlier version, perhaps
  })
  const counts = new Map<string, number>()
  for (const [name, count] of answers.flatMap((attempts) => Object.entries(attempts)))
    counts.set(name, (counts.get(name) ?? 0) + count)
  return { counts, missing: [...missing, ...failed] }
}

/** Throws 503 if a replica did not tell of its attempts. */
export function assertAllTold(name: string, { missing }: AttemptsElsewhere): void {
  if (missing.length === 0) return
  const replicas = missing.length === 1 ? 'replica' : 'replicas'
  throw noOwner(`whether ${replicas} ${missing.join(', ')} had attempts at runtime ${name} is not known`)
}

function* handlesIn({ graphs }: Pick<TaskStore, 'graphs'>): Steps<Map<string, number>> {
  const counts = new Map<string, number>()
  let steps = 0
  for (const graph of graphs) {
    if (isYieldDue(++steps)) yield
    if (graph.live === 0) continue
    for (const {
      isTerminal,
      rare: { handle },
    } of graph.tasks) {
      if (!isTerminal && handle !== undefined) {
        const name = handle.runtime ?? DEFAULT_RUNTIME
        counts.set(name, (counts.get(name) ?? 0) + 1)
      }
      if (isYieldDue(++steps)) yield
    }
  }
  return counts
}

/**
 * Idempotency keys that replicas share: the database may have the answer of another replica.
 *
 * A replica that got no answer from the database refuses a graph with 503, and its turn may be committed all the same. Its
 * next turn removes the graph and the answer. So an answer counts only once the owner of its graph shows the graph.
 */
import { badRequest, messageOf, ServiceError } from '../../../shared/contract/errors.ts'
import { isObject, jsonOrUndefined } from '../../../shared/text/json.ts'
import { IdempotencyKeys, type KeptKey, type SentKey } from '../idempotency.ts'
import type { KeptKeys, NamedGraph } from '../keeper.ts'
import { noOwner } from '../no-owner.ts'
import { type Others, OWNER_ANSWER_MS } from './others.ts'
import type { KnownAnswer, SharedRows } from './shared-rows.ts'
import type { TurnWriter } from './turn-writer.ts'
import { unavailable } from './unavailable.ts'

/** Another replica was faster with the same key. */
export class Answered extends Error {
  constructor(readonly known: KeptKey) {
    super('the key was answered by another replica')
  }
}

/** Milliseconds between two looks at an answer whose graph has no owner that shows it. */
const LOOK_AGAIN_MS = 50

export interface SharedKeysParts {
  readonly rows: Pick<SharedRows, 'answer'>
  readonly turns: Pick<TurnWriter, 'assertReachable' | 'run'>
  readonly others: Pick<Others, 'whereabouts'>
}

export class SharedKeys implements KeptKeys {
  readonly #parts: SharedKeysParts
  readonly #own = new IdempotencyKeys()

  constructor(parts: SharedKeysParts) {
    this.#parts = parts
  }

  once(
    request: { scope: string; key: string | null; body: Uint8Array },
    make: (sent: SentKey | undefined) => Promise<string>,
  ): Promise<string> {
    return this.#own.once(request, async (sent) => {
      if (sent === undefined) return await make(sent)
      if (sent.key.includes('\0')) throw badRequest('Idempotency-Key has U+0000, which the database cannot hold')
      this.#parts.turns.assertReachable()
      const known = await this.#settledAnswer(sent)
      if (known !== undefined) return answerTo(sent, known)
      try {
        return await make(sent)
      } catch (error) {
        if (!(error instanceof Answered)) throw error
        const settled = await this.#settledAnswer(sent)
        if (settled === undefined) throw noOwner('the first request with this key is being revoked', error)
        return answerTo(sent, settled)
      }
    })
  }

  /** The answer to an earlier request. Rejects with 503 while nobody can tell whether its graph stays. */
  async #settledAnswer(sent: SentKey): Promise<KnownAnswer | undefined> {
    const end = performance.now() + OWNER_ANSWER_MS
    let wasRemoved = false
    for (;;) {
      const known = await this.#answer(sent)
      // A graph that is gone while its answer stays was removed long after it was accepted.
      if (known === undefined || wasRemoved) return known
      const place = await this.#parts.others.whereabouts(graphOf(known))
      if (place === 'shown') return known
      wasRemoved = place === 'nowhere'
      if (wasRemoved) continue
      if (performance.now() > end) throw noOwner('the first request with this key is not settled')
      await Bun.sleep(LOOK_AGAIN_MS)
    }
  }

  #answer(sent: SentKey): Promise<KnownAnswer | undefined> {
    return this.#parts.rows.answer(sent).catch((error) => {
      this.#parts.turns.run(true) // finds out whether the database is away, so that others need not wait
      throw unavailable(messageOf(error), error)
    })
  }
}

/** The graph that was accepted with `answer`. Before answers were kept with its id: by what the answer says. */
function graphOf({ answer, graphId }: KnownAnswer): NamedGraph {
  const value = jsonOrUndefined(answer)
  if (isObject(value)) {
    const id = graphId ?? value.graph_id
    if (typeof id === 'string') return { graphId: id }
    const first: unknown = Array.isArray(value.task_ids) ? value.task_ids[0] : undefined
    if (typeof first === 'string') return { taskId: first }
  }
  throw new ServiceError(409, 'the answer to the first request with this key is unreadable: use another key')
}

function answerTo(sent: SentKey, { hash, answer }: KeptKey): string {
  if (hash !== sent.hash) throw new ServiceError(422, 'idempotency key reused with a different body')
  return answer
}

/** Idempotency keys that replicas share: an answer that another replica gave is looked up first. */
import { badRequest, messageOf, ServiceError } from '../../shared/errors.ts'
import { IdempotencyKeys, type SentKey } from '../journal/idempotency.ts'
import type { KeptKeys } from '../journal/keeper.ts'
import type { SharedRows } from './shared-rows.ts'
import { unavailable } from './unavailable.ts'

export class SharedKeys implements KeptKeys {
  readonly #rows: Pick<SharedRows, 'answer'>
  readonly #own = new IdempotencyKeys()

  constructor(rows: Pick<SharedRows, 'answer'>) {
    this.#rows = rows
  }

  once(
    request: { scope: string; key: string | null; body: Uint8Array },
    make: (sent: SentKey | undefined) => Promise<string>,
  ): Promise<string> {
    return this.#own.once(request, async (sent) => {
      if (sent === undefined) return await make(sent)
      if (sent.key.includes('\0')) throw badRequest('Idempotency-Key has U+0000, which the database cannot hold')
      return (await this.#known(sent)) ?? (await make(sent))
    })
  }

  async #known(sent: SentKey): Promise<string | undefined> {
    const known = await this.#rows.answer(sent).catch((error) => {
      throw unavailable(messageOf(error), error)
    })
    if (known === undefined) return undefined
    if (known.hash !== sent.hash) throw new ServiceError(422, 'idempotency key reused with a different body')
    return known.answer
  }
}

/** One call for each id of a subcommand. */
import { CallFailed } from '../../shared/http/client.ts'

/** Calls `each` for every id, also after a failure. Returns the first failure, if there is one. */
export async function callEach(
  ids: readonly string[],
  each: (id: string) => Promise<void>,
): Promise<CallFailed | undefined> {
  let first: CallFailed | undefined
  for (const id of ids) {
    try {
      await each(id)
    } catch (error) {
      if (!(error instanceof CallFailed)) throw error
      first ??= error
      if (error.statusCode === 0) break // the service is not reachable: the other calls would fail, too
    }
  }
  return first
}

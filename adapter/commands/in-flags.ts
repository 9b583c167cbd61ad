/** Refusals of the service in the words of the command line. */
import { CallFailed } from '../../shared/http/client.ts'

/** What the service says, and what to write on the command line. */
const WORDS: readonly (readonly [service: string, client: string])[] = [
  ['name tasks in "from"', 'name tasks with --from'],
  ['the X-Next-Cursor of an earlier answer', 'data.next_cursor of an earlier answer'],
  ['expected a time such as', 'expected a duration before now (1h, 7d), or a time such as'],
]

/** Resolves as `call` does. */
export async function inFlags<T>(call: Promise<T>): Promise<T> {
  try {
    return await call
  } catch (error) {
    if (!(error instanceof CallFailed)) throw error
    throw new CallFailed(
      WORDS.reduce((message, [service, client]) => message.replace(service, client), error.message),
      error,
    )
  }
}

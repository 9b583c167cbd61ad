/** Encodes ids as a JSON array. */
import { inRanges, type Steps } from '../../shared/process/steps.ts'

/** Works in steps, because the ids of a large graph take longer than a turn of the event loop may. */
export function* idList<T>(items: readonly T[], idOf: (item: T) => string): Steps<string> {
  let ids = ''
  yield* inRanges(items.length, (from, to) => {
    ids += (from === 0 ? '' : ',') + JSON.stringify(items.slice(from, to).map(idOf)).slice(1, -1)
  })
  return `[${ids}]`
}

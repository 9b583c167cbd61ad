/** Lists that replicas join: their pages for each other, and what an answer says about those that are left out. */
import { EVENT_SEQ_HEADER } from '../../shared/contract/events.ts'
import { MISSING_REPLICAS_HEADER } from '../operations/joined-lines.ts'

export const MISSING_REPLICAS =
  'With a database: numbers of the replicas that the list lacks, because they do not answer, or nobody has adopted their graphs yet.'

/** A page for another replica. It lacks the graphs of the replicas `missing`, and has all changes up to `position`. */
export const linesResponse = (lines: string, missing: readonly number[], position?: number): Response =>
  new Response(lines, {
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      ...(position !== undefined && { [EVENT_SEQ_HEADER]: String(position) }),
      ...(missing.length > 0 && { [MISSING_REPLICAS_HEADER]: missing.join(',') }),
    },
  })

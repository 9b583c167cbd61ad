/** What each operation gets. Its parameters name the parts that it uses. */
import type { EventStreams } from './event-streams.ts'
import type { Ground } from './ground.ts'
import type { Readiness } from './readiness.ts'

export interface OperationParts extends Ground {
  readonly readiness: Readiness
  readonly eventStreams: EventStreams
}

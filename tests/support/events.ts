/** A new history, and the feed of events, of a data directory. */
import { EventFeed } from '../../control/log/event-feed.ts'
import { EventHistory } from '../../control/log/event-history.ts'
import { EventNumbers } from '../../control/log/event-numbers.ts'
import { findHistory } from '../../control/log/found-history.ts'
import type { Journal } from '../../control/log/journal.ts'
import { Notes } from '../../control/log/notes.ts'
import { silentLog } from '../../shared/logs/log.ts'

export function newEvents(dataDir: string, journal: Pick<Journal, 'sync'>) {
  const log = silentLog()
  const found = findHistory(dataDir)
  const history = new EventHistory({ dataDir, found, kept: undefined, lastSeq: 0, maxEvents: 100_000, log })
  const numbers = new EventNumbers({ lastSeq: 0, notes: new Notes() })
  return { history, numbers, events: new EventFeed(history, () => journal.sync()) }
}
